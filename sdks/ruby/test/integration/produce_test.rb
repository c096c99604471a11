# frozen_string_literal: true

require_relative "../test_helper"

class ProduceTest < FilaTest
  def test_a_message_goes_through_with_everything_it_carries
    client = connect
    queue = new_queue(client)
    before = Time.now - 1
    id = client.enqueue(queue: queue, payload: "hello \xFF".b, headers: { "größe" => "日本語 🐟", empty: "" },
                        fairness_key: "acme", weight: 3, throttle_keys: %w[a:1 b:2])
    client.subscribe(queue: queue) do |consumer|
      message = receive(consumer)
      assert_equal [id, queue, "hello \xFF".b, "acme", 3, %w[a:1 b:2], 0],
                   [message.id, message.queue, message.payload, message.fairness_key, message.weight, message.throttle_keys, message.attempt_count]
      assert_equal({ "größe" => "日本語 🐟", "empty" => "" }, message.headers)
      assert_equal Encoding::BINARY, message.payload.encoding
      assert_operator message.enqueued_at, :>, before
      assert_operator message.leased_at, :>=, message.enqueued_at - 1
      refute_predicate message, :settled?
      message.ack
      assert_predicate message, :settled?
      refute_includes message.inspect, "hello"
    end
    stats = client.get_stats(queue: queue)
    assert_equal [0, 0], [stats.depth, stats.in_flight]
  end

  def test_many_messages_have_results_in_order_and_a_refused_one_costs_only_itself
    client = connect
    queue = new_queue(client)
    messages = Array.new(2500) { |n| { queue: queue, payload: n.to_s } }
    messages[1234] = { queue: "nowhere-at-all", payload: "" }
    results = client.enqueue_many(messages)
    assert_equal 2500, results.size
    assert_equal([1234], results.each_index.reject { |n| results[n].ok? })
    assert_instance_of Fila::QueueNotFoundError, results[1234].error
    assert_match(/nowhere-at-all/, results[1234].error.message)
    assert_raises(Fila::QueueNotFoundError) { results[1234].value! }
    ids = results.filter_map(&:message_id)
    assert_equal ids.sort, ids, "ids grow in the order of the call"
    assert_equal 2499, client.get_stats(queue: queue).depth
    assert_equal [], client.enqueue_many([])
  end

  def test_messages_of_one_call_keep_their_own_queue_headers_and_payload
    client = connect
    queues = [new_queue(client), new_queue(client)]
    sent = [[0, nil, "aa"], [0, nil, "bb"], [0, { "k" => "1" }, "cc"], [0, { "k" => "2" }, "dd"], [0, nil, "ee"],
            [1, nil, "ff"], [1, nil, "ggg"], [0, nil, "hhh"], [0, nil, ""], [0, {}, ""]]
    client.enqueue_many(sent.map { |at, headers, payload| { queue: queues[at], headers: headers, payload: payload } }).each(&:value!)
    queues.each_with_index do |name, at|
      expected = sent.select { |one| one.first == at }.map { |_, headers, payload| [name, headers || {}, payload] }
      found = client.consume(queue: name).first(expected.size).map { |message| [message.queue, message.headers, message.payload] }
      assert_equal expected, found
    end
  end

  def test_messages_with_and_without_options_keep_their_order
    client = connect
    queue = new_queue(client)
    client.enqueue_many([{ queue: queue, payload: "0" }, { queue: queue, payload: "1", weight: 1 }, { queue: queue, payload: "2" }])
    client.subscribe(queue: queue) do |consumer|
      assert_equal(%w[0 1 2], Array.new(3) { receive(consumer).payload })
    end
  end

  def test_an_idempotency_key_stores_once
    client = connect
    queue = new_queue(client)
    first = client.enqueue(queue: queue, payload: "a", idempotency_key: "k")
    again = client.enqueue_many([{ queue: queue, payload: "b", idempotency_key: "k" }]).first

    assert_equal first, again.message_id
    assert_predicate again, :duplicate?
    assert_equal 1, client.get_stats(queue: queue).depth
  end

  def test_a_delayed_message_waits
    client = connect
    queue = new_queue(client)
    client.enqueue(queue: queue, payload: "later", delay: 3600)
    client.enqueue(queue: queue, payload: "soon", delay: 0.2)
    client.subscribe(queue: queue) do |consumer|
      message = receive(consumer)
      assert_equal "soon", message.payload
      assert_operator message.leased_at_ms - message.enqueued_at_ms, :>=, 200
      assert_nil consumer.receive(timeout: 0)
    end
  end

  def test_a_message_larger_than_a_frame_is_cut_and_joined
    client = connect
    queue = new_queue(client)
    payload = Random.bytes(1024) * (20 * 1024)
    client.enqueue(queue: queue, payload: payload)
    client.subscribe(queue: queue) { |consumer| assert_equal payload, receive(consumer).payload }
  end

  def test_what_cannot_be_sent_is_refused_before_anything_is
    client = connect
    queue = new_queue(client)
    {
      { queue: queue, payload: nil } => TypeError, { queue: queue, payload: 1 } => TypeError,
      { queue: "", payload: "" } => ArgumentError, { queue: "q" * 65_536, payload: "" } => ArgumentError,
      { queue: queue, payload: "", headers: { "a" => 1 } } => TypeError,
      { queue: queue, payload: "", headers: { "a" => "\xC3" } } => ArgumentError,
      { queue: queue, payload: "", headers: [] } => TypeError,
      { queue: queue, payload: "", delay: -1 } => ArgumentError, { queue: queue, payload: "", weight: -1 } => ArgumentError,
      { queue: queue, payload: "", weight: 1.5 } => ArgumentError, { queue: queue, payload: "", dealy: 1 } => ArgumentError,
      { payload: "" } => ArgumentError, { queue: queue } => ArgumentError, "text" => TypeError
    }.each do |message, error|
      assert_raises(error, message.inspect[0, 80]) { client.enqueue_many([{ queue: queue, payload: "good" }, message]) }
    end
    assert_raises(ArgumentError) { client.enqueue(queue: queue, payload: "", timeout: 0) }
    assert_equal 0, client.get_stats(queue: queue).depth
  end

  def test_a_payload_is_sent_as_it_was_when_the_call_was_made
    client = connect(batch_mode: :linger, linger: 0.2)
    queue = new_queue(client)
    payload = +"before" * 10
    receipt = client.enqueue_soon(queue: queue, payload: payload)
    payload.replace("after")
    refute_predicate receipt, :done?
    assert_match(/\A\h{8}-/, receipt.value)
    client.subscribe(queue: queue) { |consumer| assert_equal "before" * 10, receive(consumer).payload }
  end

  def test_receipts_bring_results_and_errors
    client = connect
    queue = new_queue(client)
    many = client.enqueue_many_soon([{ queue: queue, payload: "a" }, { queue: "nowhere", payload: "b" }])
    assert_equal([true, false], many.value.map(&:ok?))
    assert_predicate many, :done?
    assert_raises(Fila::QueueNotFoundError) { client.enqueue_soon(queue: "nowhere", payload: "b").value }
  end

  %i[auto linger disabled].each do |mode|
    define_method("test_fifty_producers_at_once_lose_nothing_with_batch_mode_#{mode}") do
      client = connect(batch_mode: mode)
      queue = new_queue(client)
      ids = Array.new(50) { |n| Thread.new { Array.new(10) { |m| client.enqueue(queue: queue, payload: "#{n}-#{m}") } } }.flat_map(&:value)
      assert_equal 500, ids.uniq.size
      assert_equal 500, client.get_stats(queue: queue).depth
    end
  end

  def test_a_traceparent_travels_with_the_message
    client = connect
    queue = new_queue(client)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    own = trace.sub("01", "00")
    Fila::Trace.with(trace) do
      client.enqueue(queue: queue, payload: "context")
      client.enqueue(queue: queue, payload: "own", headers: { traceparent: own })
    end
    hooked = connect(traceparent: -> { trace })
    hooked.enqueue(queue: queue, payload: "hook", headers: { "a" => "b" })
    seen = []
    pool = client.pool(queue: queue, threads: 1) { |message| seen << [message.payload, message.traceparent, Fila::Trace.current] }
    eventually("three messages") { seen.size == 3 }
    pool.stop
    assert_equal [["context", trace, trace], ["own", own, own], ["hook", trace, trace]], seen
  end
end
