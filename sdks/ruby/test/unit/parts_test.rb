# frozen_string_literal: true

require_relative "../test_helper"
require "open3"

class PartsTest < FilaTest
  def test_generated_files_are_current
    out, status = Open3.capture2e(RbConfig.ruby, File.expand_path("../../script/generate", __dir__), "--check")

    assert_predicate status, :success?, out
  end

  def test_addresses_are_read_as_people_write_them
    { "localhost:5555" => ["localhost", 5555], "broker" => ["broker", 5555], "[::1]:7" => ["::1", 7], "[::1]" => ["::1", 5555],
      "https://host:1/" => ["host", 1], "http://host" => ["host", 5555], " 10.0.0.1:65535 " => ["10.0.0.1", 65_535] }.each do |text, expected|
      address = Fila::Address.parse(text)
      assert_equal expected, [address.host, address.port], text
    end
    assert_predicate Fila::Address.parse("https://host"), :tls?
    assert_equal "[::1]:7", Fila::Address.parse("[::1]:7").to_s
    ["", ":5555", "host:0", "host:65536", "host:x", "::1:5555", "[::1"].each do |text|
      assert_raises(ArgumentError, text) { Fila::Address.parse(text) }
    end
  end

  # Callers can reach their deadlines together, with a broker away and everything waiting.
  def test_thousands_who_give_up_together_take_no_time
    callers = 10_000
    collector = Fila::Collector.new(:auto, 0.005, 1000, 1 << 20)
    collector.frames_under_way = 1
    calls = Array.new(callers) { Fila::Call.new(nil, "enqueue", Fila::Kinds::ENQUEUE, 1, "q") }
    calls.each { |call| collector.add([Fila::Run.new(call, 0, "q", ["x" * 100], [100])], 0) }
    freed = calls.drop(1).reverse.map do |call|
      call.abandon!
      collector.forget(1, 100)
    end
    # Each looks at all that wait; one for every caller would be the square of them.
    assert_operator freed.count(&:positive?), :<, 200
    assert_operator collector.runs.size, :<=, 8
    assert_equal callers * 100, freed.sum + collector.runs.sum(&:size)
  end

  Delivered = Struct.new(:id, :attempt_count)

  def test_what_is_delivered_during_a_beat_is_not_forgotten_with_its_answer
    stream = Fila::Stream.new(nil, "q", 10, heartbeat: true)
    %w[gone again].each { |id| stream.push([Delivered.new(id, 0)]) }

    assert_equal %w[gone again], stream.held
    stream.push([Delivered.new("again", 1)]) # its lease ran out, and this consumer got it once more
    stream.forget(%w[gone again])
    assert_equal %w[again], stream.held
  end

  def test_a_reader_that_is_interrupted_leaves_the_message_to_another
    core = Fila::Core.new(nil, Fila::Address.parse("127.0.0.1:1"), Fila::Options.new(Fila::Address.parse("host"), {}), nil)
    stream = Fila::Stream.new(core, "q", 10)
    readers = Array.new(2) do
      thread = Thread.new { core.synchronize { stream.take(1, nil) } }
      thread.report_on_exception = false
      Thread.pass until thread.status == "sleep"
      thread
    end
    core.synchronize do
      stream.push([Delivered.new("1", 0)])
      readers.first.raise(Interrupt) # as it is told of the message
    end
    assert readers.last.join(PATIENCE), "nobody read the message"
    assert_equal "1", readers.last.value.first.id
    assert_raises(Interrupt) { readers.first.value }
  ensure
    core.close
  end

  def test_options_are_checked_and_unknown_ones_named
    address = Fila::Address.parse("host")
    { { timeuot: 1 } => /timeuot.*known are/, { timeout: 0 } => /timeout/, { batch_mode: :fast } => /:auto, :linger or :disabled/,
      { client_cert: "x" } => /client_key/, { linger: -1 } => /linger/, { on_event: 1 } => /on_event/,
      { api_key: "\xFF" } => /api_key/ }.each do |given, text|
      error = assert_raises(ArgumentError, given.inspect) { Fila::Options.new(address, given) }
      assert_match text, error.message
    end
    assert Fila::Options.new(address, { ca_cert: "x" }).tls
  end

  def test_reconnect_pauses_double_up_to_their_bound
    options = Fila::Options.new(Fila::Address.parse("host"), { reconnect_pause_min: 0.1, reconnect_pause_max: 1 })

    assert_equal [0.1, 0.2, 0.4, 0.8, 1, 1], Array.new(6) { |attempt| options.pause_after(attempt) }
    assert_equal 1, options.pause_after(10_000)
  end

  def test_auto_sends_at_once_and_then_collects_until_there_is_enough
    collector = Fila::Collector.new(:auto, 1, 1000, 1 << 20)
    collector.add(runs(1), 0)
    assert collector.due?(0)
    collector.take
    collector.frames_under_way = 1
    collector.add(runs(99), 0)
    refute collector.due?(0)
    collector.add(runs(1), 0)
    assert collector.due?(0)
    assert_equal 100, collector.take.size
    refute collector.due?(0)
  end

  def test_linger_waits_and_disabled_keeps_calls_apart
    lingering = Fila::Collector.new(:linger, 5, 3, 1 << 20)
    lingering.add(runs(1), 10)
    lingering.add(runs(1), 12)
    refute lingering.due?(14.9)
    assert_equal 15, lingering.due_at
    assert lingering.due?(15)
    lingering.add(runs(1), 13)
    assert lingering.due?(13), "it is full"

    apart = Fila::Collector.new(:disabled, 1, 100, 1 << 20)
    apart.add(runs(3, :first), 0)
    apart.add(runs(2, :second), 0)
    assert_equal [3, 2], [apart.take.size, apart.take.size]
    refute apart.due?(0)
  end

  def test_a_frame_is_bounded_and_a_large_message_goes_alone
    collector = Fila::Collector.new(:auto, 1, 4, 100)
    collector.add(runs(10), 0)
    assert_equal [4, 4, 2], Array.new(3) { collector.take.size }
    collector.add(runs(1, :call, 500) + runs(2, :call, 60), 0)
    assert_equal [1, 1, 1], Array.new(3) { collector.take.size }
  end

  def test_what_a_call_has_waiting_is_forgotten_with_it
    collector = Fila::Collector.new(:auto, 1, 100, 1 << 20)
    mine, other = Array.new(2) { Fila::Call.new(nil, "enqueue", Fila::Kinds::ENQUEUE, 2, "q") }
    collector.add(runs(2, mine) + runs(1, other), 0)
    mine.abandon!

    assert_equal 20, collector.forget(2, 20)
    assert_equal 1, collector.take.size
  end

  def test_runs_end_with_the_queue_with_a_full_frame_and_where_a_message_may_not_be_sent_again
    call = Fila::Call.new(nil, "enqueue", Fila::Kinds::ENQUEUE_WITH, 9, "q")
    runs = Fila::Runs.new(call, 3, 100)
    a, b = %w[a b]
    [[a, 10], [a, 10], [a, 10], [a, 10], [b, 10], [b, 95], [b, 200], [b, 5], [b, 5, true]].each do |queue, size, again|
      runs.add(queue, "", "x" * size, size, nil, nil, again || false)
    end
    made = runs.finish

    assert_equal [[0, 3, 30], [3, 1, 10], [4, 1, 10], [5, 1, 95], [6, 1, 200], [7, 1, 5], [8, 1, 5]],
                 (made.map { |run| [run.first, run.count, run.size] })
    assert_equal [false, true], made.last(2).map(&:repeatable?)
    assert_empty Fila::Runs.new(call, 3, 100).finish
  end

  def test_a_run_can_be_sent_alone_with_others_and_in_halves
    call = Fila::Call.new(nil, "ack", Fila::Kinds::ACK, 4, "q")
    parts = ["\xC3\xA9".b, "é", "", "\xFF"] # of any encoding
    run = Fila::Run.new(call, 1, "q", parts, parts.map(&:bytesize), ids: %w[w x y z])
    run.hops = 2
    bytes = "\xC3\xA9\xC3\xA9\xFF".b
    assert_equal "\x00\x00\x00\x0F\x10\x00\x00\x00\x00\x07\x00\x00\x00\x04".b + bytes, run.frame(0x10, 7)
    assert_equal "before".b + bytes, run.append_to("before".b)
    halves = run.halves
    assert_equal [[1, 2, %w[w x], 2, bytes[0, 4]], [3, 2, %w[y z], 2, bytes[4..]]],
                 (halves.map { |half| [half.first, half.count, half.ids, half.hops, half.append_to("".b)] })
    assert_equal [[3, 1], [4, 1]], (halves.last.halves.map { |half| [half.first, half.count] })
  end

  def test_a_payload_that_changes_while_it_is_encoded_breaks_no_frame
    call = Fila::Call.new(nil, "enqueue", Fila::Kinds::ENQUEUE, 1, "q")

    assert_raises(ArgumentError) { Fila::Run.new(call, 0, "q", ["longer"], [5]) }
  end

  def test_the_first_results_of_a_run_count
    core = Object.new
    def core.finished(_) = nil
    call = Fila::Call.new(core, "ack", Fila::Kinds::ACK, 3, "q")
    call.settle(1, %i[ok ok], false)
    refute_predicate call, :done?
    call.settle(1, [Fila::Error.new("late"), :ok], true)
    call.settle(0, %i[ok], false)

    assert_equal [true, false, %i[ok ok ok]], [call.done?, call.failed?, call.results]
  end

  def test_strings_are_sent_as_utf8_or_refused
    text = Fila::Wire::Text
    assert_equal "\x00\x03\xE2\x82\xAC".b, text.field("€".encode("ISO-8859-15"), "x")
    assert_equal "\x00\x02\xC3\xA9".b, text.field("é".b, "x")
    assert_equal "\x00\x03abc".b, text.field(:abc, "x")
    assert_raises(ArgumentError) { text.field("\xC3", "x") }
    assert_raises(ArgumentError) { text.field("\xFF".b, "x") }
    assert_raises(ArgumentError) { text.field("a" * 65_536, "x") }
    assert_raises(TypeError) { text.field(1, "x") }
  end

  def test_errors_have_names_codes_and_verdicts
    busy = Fila::Failure.refusal(9, nil, metadata: { "retry_after_ms" => "250" })
    assert_instance_of Fila::ChannelFullError, busy
    assert_equal ["ChannelFull", 9, 0.25], [busy.name, busy.code, busy.retry_after]
    assert_predicate busy, :retryable?
    assert_instance_of Fila::InternalError, Fila::Failure.refusal(200)
    assert_nil Fila::TimeoutError.new("x").code
    assert_equal "ConnectionLost", Fila::ConnectionLostError.new("x").name
    assert_predicate Fila::ConnectionLostError.new("x"), :maybe_applied?
    batch = Fila::BatchError.new([nil, busy, Fila::QueueNotFoundError.new("gone")])
    assert_equal [1, 2], batch.errors.keys
    refute_predicate batch, :retryable?
    assert_match(/2 of 3 items failed/, batch.message)
  end

  def test_every_cause_of_the_catalogue_has_a_class
    catalogue = JSON.parse(File.read(File.join(Broker::ROOT, "spec/errors.json")))["errors"].reject { |row| row["code"].zero? }
    found = Fila::CAUSES.values.map { |type| [type::CODE, type::NAME, type::RETRYABLE] }

    assert_equal catalogue.map { |row| row.values_at("code", "name", "retryable") }, found
  end

  def test_the_trace_context_belongs_to_its_block
    assert_nil Fila::Trace.current
    Fila::Trace.with("00-a") do
      Fila::Trace.with("00-b") { assert_equal "00-b", Fila::Trace.current }
      assert_equal "00-a", Fila::Trace.current
      assert_nil Thread.new { Fila::Trace.current }.value
    end
    assert_nil Fila::Trace.current
  end

  private

  def runs(count, call = :call, bytes = 10)
    Array.new(count) { |index| Fila::Run.new(call, index, "q", ["x" * bytes], [bytes]) }
  end
end
