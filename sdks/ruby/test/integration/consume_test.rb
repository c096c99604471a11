# frozen_string_literal: true

require_relative "../test_helper"

class ConsumeTest < FilaTest
  def test_the_block_form_yields_until_the_client_is_closed
    client = connect
    queue = filled_queue(client, 3)
    seen = []
    client.consume(queue: queue) do |message|
      seen << message.payload
      message.ack
      Thread.new { client.close } if seen.size == 3
    end
    assert_equal %w[0 1 2], seen
  end

  def test_the_enumerator_form_subscribes_when_it_is_asked_and_is_lazy
    client = connect
    queue = filled_queue(client, 10)
    messages = client.consume(queue: queue, prefetch: 4)
    assert_instance_of Enumerator, messages
    assert_equal 0, client.get_stats(queue: queue).active_consumers
    odd = messages.lazy.select { |message| message.payload.to_i.odd? }.map { |message| message.tap(&:ack).payload }
    assert_equal %w[1 3], odd.first(2)
    eventually("it unsubscribed") { client.get_stats(queue: queue).active_consumers.zero? }
  end

  def test_the_enumerator_can_be_asked_for_one_message_after_the_other
    client = connect
    queue = filled_queue(client, 2)
    messages = client.consume(queue: queue)
    assert_equal(%w[0 1], Array.new(2) { messages.next.tap(&:ack).payload })
    client.drain(timeout: PATIENCE)
    assert_raises(StopIteration) { messages.next }
  end

  def test_leaving_the_block_hands_back_what_was_not_yielded
    client = connect
    queue = filled_queue(client, 20)
    client.consume(queue: queue) { break }
    eventually("19 messages are at hand") do
      stats = client.get_stats(queue: queue)
      stats.depth == 19 && stats.in_flight == 1 && stats.active_consumers.zero?
    end
    client.subscribe(queue: queue) { |consumer| assert_equal 0, receive(consumer).attempt_count }
  end

  # Mistakes of earlier clients: a stream error that only ends the loop, and one raised on a thread where
  # nobody sees it.
  def test_a_stream_error_reaches_every_form_of_consuming
    client = connect
    queue = new_queue(client)
    pool = client.pool(queue: queue) { flunk }
    consumer = client.subscribe(queue: queue)
    block = Thread.new { client.consume(queue: queue) { flunk } }
    enumerator = Thread.new { client.consume(queue: queue).next }
    [block, enumerator].each { |thread| thread.report_on_exception = false }
    eventually("all four consume") { client.get_stats(queue: queue).active_consumers == 4 }
    client.delete_queue(queue: queue)
    [-> { pool.join(timeout: PATIENCE) }, -> { consumer.receive(timeout: PATIENCE) }, -> { block.value }, -> { enumerator.value }].each do |form|
      error = assert_raises(Fila::QueueNotFoundError, &form)
      assert_match(/#{queue}/, error.message)
    end
    refute_predicate pool, :running?
    assert_instance_of Fila::QueueNotFoundError, consumer.error
    assert_predicate consumer, :closed?
    error = assert_raises(Fila::QueueNotFoundError) { client.consume(queue: queue) { flunk } }
    assert_match(/#{queue}/, error.message)
    assert_raises(Fila::QueueNotFoundError) { client.pool(queue: queue) { flunk } }
  end

  def test_a_handlers_exception_is_a_nack_and_its_return_an_ack
    client = connect
    queue = filled_queue(client, 20, on_failure: 'function on_failure(msg) return { action = "retry" } end')
    lock = Mutex.new
    attempts = Hash.new(0)
    pool = client.pool(queue: queue, threads: 4) do |message|
      lock.synchronize { attempts[message.payload] += 1 }
      raise "odd at first" if message.payload.to_i.odd? && message.attempt_count.zero?
    end
    eventually("all are done") do
      stats = client.get_stats(queue: queue)
      stats.depth.zero? && stats.in_flight.zero?
    end
    assert_same pool, pool.stop
    assert_equal({ 1 => 10, 2 => 10 }, attempts.values.tally)
  end

  def test_a_handler_may_settle_its_message_itself
    client = connect
    queue = filled_queue(client, 3)
    seen = Queue.new
    pool = client.pool(queue: queue, threads: 1) do |message|
      message.nack("not now") if message.payload == "0"
      seen << message
    end
    3.times { seen.pop }
    pool.stop
    dead = client.get_stats(queue: "#{queue}.dlq").depth
    assert_equal 1, dead + client.get_stats(queue: queue).then { |stats| stats.depth + stats.in_flight }
  end

  def test_what_no_handler_should_raise_ends_the_pool_and_releases_the_message
    client = connect
    queue = filled_queue(client, 1)
    pool = client.pool(queue: queue) { exit 3 }
    assert_equal 3, assert_raises(SystemExit) { pool.join(timeout: PATIENCE) }.status
    client.subscribe(queue: queue) { |consumer| assert_equal 0, receive(consumer).attempt_count }
  end

  def test_prefetch_bounds_what_a_consumer_holds
    client = connect
    queue = filled_queue(client, 20)
    consumer = client.subscribe(queue: queue, prefetch: 5)
    eventually("five are leased") { client.get_stats(queue: queue).in_flight == 5 }
    messages = consumer.receive_many(100, timeout: PATIENCE)
    messages << receive(consumer) while messages.size < 5
    assert_nil consumer.receive(timeout: 0.1)
    client.ack_many(messages)
    assert_equal "5", receive(consumer).payload
    [0, 65_536, "many"].each do |prefetch|
      assert_raises(ArgumentError) { client.subscribe(queue: queue, prefetch: prefetch) }
      assert_raises(ArgumentError) { client.consume(queue: queue, prefetch: prefetch) }
    end
  end

  def test_several_consumers_and_threads_share_one_connection
    client = connect
    queues = Array.new(3) { filled_queue(client, 40) }
    seen = queues.to_h { |queue| [queue, Queue.new] }
    consumers = queues.flat_map { |queue| [client.subscribe(queue: queue, prefetch: 3), client.subscribe(queue: queue, prefetch: 7)] }
    threads = consumers.flat_map do |consumer|
      Array.new(2) { Thread.new { consumer.each { |message| seen[consumer.queue] << message.tap(&:ack).payload } } }
    end
    eventually("all came") { seen.values.all? { |payloads| payloads.size == 40 } }
    consumers.each(&:close)
    threads.each(&:join)
    seen.each_value { |payloads| assert_equal 40, Array.new(40) { payloads.pop }.uniq.size }
  end

  def test_settling_many_tells_which_were_not_leased
    client = connect
    queue = filled_queue(client, 3)
    consumer = client.subscribe(queue: queue)
    messages = Array.new(3) { receive(consumer) }
    error = assert_raises(Fila::BatchError) do
      client.ack_many(queue: queue, ids: [messages[0].id, "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b", "no id"])
    end
    assert_equal [nil, Fila::MessageNotFoundError, Fila::MessageNotFoundError], (error.results.map { |result| result&.class })
    assert_nil client.ack_many(messages[1..1])
    assert_nil client.nack_many([messages[2]], error: RuntimeError.new("broken"))
    assert_nil client.ack_many([])
    assert_raises(Fila::MessageNotFoundError) { messages[0].ack }
    assert_raises(Fila::MessageNotFoundError) { client.ack(queue: queue, id: messages[0].id) }
    assert_raises(Fila::BatchError) { client.ack_many_soon(messages.first(2)).value }
    assert_raises(ArgumentError) { client.ack_many }
    assert_raises(ArgumentError) { client.ack_many(messages, queue: queue, ids: []) }
  end

  def test_release_keeps_the_place_and_counts_no_attempt
    client = connect
    queue = filled_queue(client, 2)
    client.subscribe(queue: queue, prefetch: 1) do |consumer|
      2.times do
        message = receive(consumer)
        assert_equal ["0", 0], [message.payload, message.attempt_count]
        message.release
      end
      message = receive(consumer)
      client.release_many([message])
      assert_equal "0", receive(consumer).payload
    end
  end

  def test_a_forgotten_consumer_gives_its_messages_back
    client = connect
    queue = filled_queue(client, 5)
    Thread.new { client.consume(queue: queue).next }.join
    eventually("the garbage collector found it") do
      GC.start
      client.get_stats(queue: queue).active_consumers.zero?
    end
    eventually("four are at hand again") { client.get_stats(queue: queue).depth == 4 }
  end

  private

  def filled_queue(client, count, **options)
    queue = new_queue(client, **options)
    client.enqueue_many(Array.new(count) { |n| { queue: queue, payload: n.to_s } }).each(&:value!)
    queue
  end
end
