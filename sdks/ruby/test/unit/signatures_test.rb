# frozen_string_literal: true

require_relative "../test_helper"

# The signatures in sig/ and the code say the same: every public method is in both, with the same keywords.
class SignaturesTest < FilaTest
  INTERNAL = %i[settle_message settle_soon extend_held in_loop announce link read settled! working inspect to_s].freeze
  CLASSES = [Fila::Client, Fila::Consumer, Fila::Pool, Fila::Message, Fila::EnqueueResult, Fila::Receipt].freeze

  def test_every_public_method_has_a_signature_and_every_signature_a_method
    CLASSES.each do |type|
      mine = type.ancestors.select { |owner| owner.name&.start_with?("Fila::") }
      methods = mine.flat_map { |owner| owner.public_instance_methods(false) }.uniq - INTERNAL
      assert_equal methods.sort, signatures(type).keys.sort, type.name
    end
  end

  def test_keywords_of_signatures_and_methods_agree
    CLASSES.each do |type|
      signatures(type).each do |name, functions|
        keywords = type.instance_method(name).parameters
        next if keywords.any? { |kind, _| kind == :keyrest }

        functions.each do |function|
          expected = [named(keywords, :keyreq), named(keywords, :key)]
          assert_equal expected, [function.required_keywords.keys.sort, function.optional_keywords.keys.sort], "#{type}##{name}"
        end
      end
    end
  end

  def test_the_options_of_a_client_are_in_its_signature
    constructor = members("Client").find { |member| member.is_a?(RBS::AST::Members::MethodDefinition) && member.name == :initialize }
    assert_equal Fila::Options::DEFAULTS.keys.sort, constructor.types.first.type.optional_keywords.keys.sort
  end

  def test_every_error_has_a_signature
    errors = Fila.constants.map { |name| Fila.const_get(name) }.select { |type| type.is_a?(Class) && type <= Fila::Error }
    assert_empty errors.map { |type| type.name.delete_prefix("Fila::") } - declared.keys
  end

  private

  def named(parameters, kind) = parameters.filter_map { |found, name| name if found == kind }.sort

  def signatures(type)
    members(type.name.delete_prefix("Fila::")).each_with_object({}) do |member, found|
      case member
      when RBS::AST::Members::MethodDefinition
        found[member.name] = member.types.map(&:type) if member.kind == :instance && member.name != :initialize
      when RBS::AST::Members::AttrReader then found[member.name] = []
      end
    end
  end

  def members(name) = declared.fetch(name).members

  def declared
    @declared ||= begin
      require "rbs"
      parsed = RBS::Parser.parse_signature(File.read(File.expand_path("../../sig/fila.rbs", __dir__)))
      parsed = parsed[2] unless parsed.first.respond_to?(:members) # newer RBS returns buffer and directives first
      parsed.first.members.select { |one| one.respond_to?(:members) }.to_h { |one| [one.name.name.to_s, one] }
    end
  end
end
