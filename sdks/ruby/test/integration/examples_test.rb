# frozen_string_literal: true

require_relative "../test_helper"
require "open3"

class ExamplesTest < FilaTest
  ROOT = File.expand_path("../..", __dir__)

  def test_produce_consume_receives_what_it_stored
    out = run_example("produce_consume")
    assert_equal 10, out.scan(/^stored \h{8}-/).size
    assert_equal Array.new(10) { |n| "received message #{n}" }, out.lines(chomp: true).last(10)
  end

  def test_fairness_serves_the_quiet_tenant
    served = run_example("fairness")[/among the first (\d+) of 1010/, 1].to_i
    assert_includes 10..50, served
  end

  def test_throttling_slows_only_what_is_throttled
    assert_equal "six throttled calls took at least 400 ms: true; the free ones were done before them: true\n", run_example("throttling")
  end

  def test_retries_end_in_the_dead_letter_queue_and_come_back
    assert_equal ["attempt 0 fails", "attempt 1 fails", "attempt 2 fails", "job is done", "1 dead letter was moved back and done"],
                 run_example("retries").lines(chomp: true)
  end

  def test_the_readmes_first_program_runs
    program = readme[/```ruby\n(.*?)```/m, 1].sub("localhost:5555", Broker.shared.address)
    out = ruby("-e", program)
    assert_equal({ "noisy hello" => 3, "quiet hello" => 1 }, out.lines(chomp: true).tally)
    refute_equal "quiet hello", out.lines(chomp: true).last
  end

  # Mistake of earlier clients: a package name in the README that is not the package's.
  def test_the_readme_names_this_gem
    spec = Gem::Specification.load(File.join(ROOT, "fila-client.gemspec"))
    assert_equal ["gem install #{spec.name}"], readme.scan(/gem install \S+/)
    assert_includes readme, "gem \"#{spec.name}\""
    assert_includes File.read(File.join(ROOT, "CHANGELOG.md")), "## [#{spec.version}]"
    assert_empty spec.dependencies
    assert_empty Dir[File.join(ROOT, "lib/**/*.rb")].map { |path| path.delete_prefix("#{ROOT}/") } - spec.files
  end

  def test_the_gem_is_required_by_its_name_too
    assert_equal Fila::VERSION, ruby("-e", 'require "fila-client"; print Fila::VERSION')
  end

  private

  def readme = File.read(File.join(ROOT, "README.md"))

  def run_example(name) = ruby(File.join(ROOT, "examples/#{name}.rb"), Broker.shared.address)

  def ruby(*arguments)
    out, err, status = Open3.capture3(RbConfig.ruby, "-W", "-I", File.join(ROOT, "lib"), *arguments)
    assert_predicate status, :success?, err
    assert_empty err
    out
  end
end
