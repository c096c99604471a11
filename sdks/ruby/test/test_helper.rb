# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "minitest/autorun"
require "json"
require "timeout"
require "fila"
require_relative "support/broker"
require_relative "support/peer"
require_relative "support/certificates"

Thread.report_on_exception = true

# What the tests share.
class FilaTest < Minitest::Test
  VECTORS = File.join(Broker::ROOT, "spec/vectors")
  PATIENCE = 30 # seconds; far more than anything needs

  # A test that hangs says where.
  def run
    Timeout.timeout(120) { super }
  end

  def teardown
    @clients&.each(&:close)
    @peers&.each(&:close)
    @brokers&.each(&:remove)
  end

  def connect(address = Broker.shared.address, **options)
    Fila::Client.new(address, **options).tap { |client| (@clients ||= []) << client }
  end

  def broker(settings = {}) = Broker.new(settings).tap { |broker| (@brokers ||= []) << broker }

  def peer(**options, &script) = Peer.new(**options, &script).tap { |peer| (@peers ||= []) << peer }

  def new_queue(client, **options)
    name = "#{self.class.name.downcase}-#{rand(1 << 40)}"
    client.create_queue(queue: name, **options)
    name
  end

  def receive(consumer) = consumer.receive(timeout: PATIENCE) || flunk("no message came")

  def eventually(what)
    deadline = now + PATIENCE
    until (found = yield)
      flunk "not within #{PATIENCE} s: #{what}" if now > deadline
      sleep 0.01
    end
    found
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def vectors(file) = JSON.parse(File.read(File.join(VECTORS, "#{file}.json")))

  # Bytes and strings of the vectors, with their repeats written out.
  def written_out(given)
    case given
    when Array then given.map { |piece| written_out(piece) }.join
    when Hash then [given["repeat"]].pack("H*") * given["count"]
    else [given].pack("H*")
    end
  end
end
