# frozen_string_literal: true

require_relative "../test_helper"
require "logger"
require "stringio"

class TroubleTest < FilaTest
  PAUSES = { reconnect_pause_min: 0.01, reconnect_pause_max: 0.1 }.freeze

  def test_a_killed_broker_loses_nothing_acknowledged_and_consumers_come_back
    broker = broker()
    events = Queue.new
    log = StringIO.new
    client = connect(broker.address, on_event: ->(event) { events << event.kind }, logger: Logger.new(log), **PAUSES)
    queue = new_queue(client, visibility_timeout: 1)
    seen = Queue.new
    pool = client.pool(queue: queue, threads: 4) { |message| seen << message.id }
    stored = Queue.new
    producers = producing(client, queue, 200, stored)
    eventually("some are stored") { stored.size > 50 }
    broker.kill
    broker.start
    producers.each(&:join)
    producing(client, queue, 20, stored).each(&:join)
    wanted = Array.new(stored.size) { stored.pop }
    assert_operator wanted.size, :>, 160
    found = {}
    eventually("everything stored was seen") do
      found[seen.pop] = true until seen.empty?
      wanted.all? { |id| found[id] }
    end
    pool.stop(timeout: PATIENCE)
    told = Array.new(events.size) { events.pop }
    assert_equal %i[connected disconnected reconnecting], told.uniq.first(3)
    assert_equal :connected, told.last
    assert_match(/connection lost/, log.string)
  end

  def test_what_was_not_sent_yet_waits_for_the_connection
    broker = broker()
    client = connect(broker.address, **PAUSES)
    queue = new_queue(client)
    broker.kill
    eventually("it noticed") { client.get_stats(queue: queue, timeout: 0.1) && false rescue $!.message.include?("not connected") }
    waiting = Thread.new { client.enqueue(queue: queue, payload: "x") }
    reading = Thread.new { client.get_stats(queue: queue) }
    broker.start
    assert_match(/\A\h{8}-/, waiting.value)
    assert_operator reading.value.depth, :<=, 1
  end

  def test_a_call_on_a_frozen_broker_ends_with_its_deadline
    broker = broker()
    client = connect(broker.address, timeout: 0.3)
    queue = new_queue(client, timeout: PATIENCE)
    broker.freeze
    error = assert_raises(Fila::TimeoutError) { client.enqueue(queue: queue, payload: "x") }
    assert_match(/0\.3 s/, error.message)
    assert_predicate error, :retryable?
    assert_predicate error, :maybe_applied?
    assert_raises(Fila::TimeoutError) { client.get_stats(queue: queue, timeout: 0.05) }
    assert_raises(Fila::TimeoutError) { client.subscribe(queue: queue, timeout: 0.05) }
    receipt = client.enqueue_soon(queue: queue, payload: "x")
    assert_raises(Fila::TimeoutError) { receipt.value(timeout: 0.05) }
    broker.thaw
    assert_match(/\A\h{8}-/, receipt.value(timeout: PATIENCE))
    assert_match(/\A\h{8}-/, client.enqueue(queue: queue, payload: "y", timeout: PATIENCE))
  end

  # Mistake of earlier clients: a batch that runs under its first caller's deadline.
  def test_a_batch_outlives_its_first_caller
    client = connect(batch_mode: :linger, linger: 0.5)
    queue = new_queue(client)
    first = Thread.new { client.enqueue(queue: queue, payload: "first", timeout: 0.1) }
    first.report_on_exception = false
    interrupted = Thread.new { client.enqueue(queue: queue, payload: "interrupted") }
    interrupted.report_on_exception = false
    others = Array.new(3) { |n| Thread.new { client.enqueue(queue: queue, payload: n.to_s) } }
    sleep 0.2
    interrupted.raise(IOError, "enough")
    assert_raises(Fila::TimeoutError) { first.value }
    assert_raises(IOError) { interrupted.value }
    others.each { |thread| assert_match(/\A\h{8}-/, thread.value) }
    assert_equal 3, client.get_stats(queue: queue).depth, "what was given up before it was sent is not stored"
  end

  def test_interrupted_threads_leave_the_client_whole
    client = connect
    queue = new_queue(client)
    consumer = client.subscribe(queue: queue)
    200.times do |n|
      thread = Thread.new { n.even? ? client.enqueue(queue: queue, payload: "x") : consumer.receive(timeout: 0.001) }
      thread.report_on_exception = false
      sleep(rand / 2000)
      n % 3 == 0 ? thread.kill : thread.raise(IOError)
      thread.join rescue nil
    end
    assert_match(/\A\h{8}-/, client.enqueue(queue: queue, payload: "last"))
    Timeout.timeout(PATIENCE) { message = receive(consumer) until message&.payload == "last" }
    client.drain(timeout: PATIENCE)
  end

  def test_a_connections_thread_that_is_killed_leaves_nobody_waiting
    silent = peer
    client = connect(silent.address)
    waiting = Thread.new { client.enqueue(queue: "q", payload: "x") }
    waiting.report_on_exception = false
    eventually("it is sent") { silent.seen.size == 1 }
    Thread.list.find { |thread| thread.name == "fila #{silent.address}" }.kill
    assert_raises(Fila::ConnectionLostError) { waiting.value }
    assert_raises(Fila::ConnectionLostError) { client.get_stats(queue: "q") }
    assert_predicate client, :closed?
  end

  def test_bytes_in_flight_are_bounded
    payload_bytes = 0
    stalled = peer { |_, name, _, body| payload_bytes += body[:messages].sum { |one| one[:payload].bytesize } if name == "Enqueue" }
    client = connect(stalled.address, in_flight_bytes: 1 << 20, batch_mode: :disabled)
    threads = Array.new(20) { Thread.new { client.enqueue(queue: "q", payload: "x" * (1 << 18)) } }
    threads.each { |thread| thread.report_on_exception = false }
    eventually("it sends up to the bound") { payload_bytes >= 3 << 18 }
    sleep 0.3
    assert_operator payload_bytes, :<=, (1 << 20) + (1 << 18)
    error = assert_raises(Fila::TimeoutError) { client.enqueue(queue: "q", payload: "x" * (1 << 18), timeout: 0.1) }
    assert_match(/bytes are under way/, error.message)
    client.close
    threads.each { |thread| assert_raises(Fila::ClosedError) { thread.value } }
  end

  def test_a_half_open_connection_is_given_up
    asked = 0
    silent = peer { |caller, name, id, body| (asked += 1) > 1 && caller.accept(name, id, body) }
    client = connect(silent.address, keepalive_interval: 0.1, keepalive_timeout: 0.2, **PAUSES)
    error = assert_raises(Fila::ConnectionLostError) { client.enqueue(queue: "q", payload: "x") }
    assert_match(/silent for/, error.message)
    assert_match(/\A\h{8}-/, client.enqueue(queue: "q", payload: "x"))
    assert_includes silent.seen_names, "Ping"
  end

  def test_an_enqueue_with_an_idempotency_key_and_a_read_are_sent_again
    refused = 0
    flaky = peer do |caller, name, id, body|
      (refused += 1) <= 2 ? caller.close : caller.accept(name, id, body)
    end
    client = connect(flaky.address, **PAUSES)
    assert_match(/\A\h{8}-/, client.enqueue(queue: "q", payload: "x", idempotency_key: "k"))
    refused = 1
    assert_equal 7, client.get_stats(queue: "q").depth
    refused = 1
    assert_raises(Fila::ConnectionLostError) { client.enqueue(queue: "q", payload: "x") }
  end

  def test_a_ping_is_answered_while_nobody_reads
    pong = Queue.new
    nosy = peer do |caller, name, id, body|
      pong << id if name == "Pong"
      caller.accept(name, id, body)
      caller.send("Ping", 4711, {}) if name == "Consume"
    end
    consumer = connect(nosy.address).subscribe(queue: "q")
    assert_equal 4711, pong.pop
    consumer.close
  end

  def test_strangers_are_told_apart
    mute = peer(handshake: false)
    error = assert_raises(Fila::ConnectFailedError) { connect(mute.address, connect_timeout: 0.3) }
    assert_match(/0\.3 s/, error.message)
    web = peer(handshake: false) { |caller, *| caller.raw("HTTP/1.1 400 Bad Request\r\n\r\n") }
    error = assert_raises(Fila::ConnectFailedError) { connect(web.address) }
    assert_match(/does not speak FIBP/, error.message)
    closing = peer(handshake: false) { |caller, *| caller.close }
    assert_raises(Fila::ConnectFailedError) { connect(closing.address) }
    old = peer(handshake: false) { |caller, _, id, _| caller.error(id, Fila::UnsupportedVersionError, "too new", { "max_version" => "0" }) }
    error = assert_raises(Fila::UnsupportedVersionError) { connect(old.address) }
    assert_equal "0", error.metadata["max_version"]
    probe = TCPServer.new("127.0.0.1", 0).tap { |server| @port = server.addr[1] }
    probe.close
    error = assert_raises(Fila::ConnectFailedError) { connect("127.0.0.1:#{@port}") }
    assert_match(/connection refused; is the broker running/, error.message)
    assert_raises(Fila::ConnectFailedError) { connect("no-such-host.invalid:1") }
  end

  def test_garbage_ends_the_connection_and_not_the_client
    rude = true
    peer = peer { |caller, name, id, body| rude ? caller.raw("\xFF" * 20) : caller.accept(name, id, body) }
    client = connect(peer.address, **PAUSES)
    error = assert_raises(Fila::ConnectionLostError) { client.enqueue(queue: "q", payload: "x") }
    assert_match(/no frame/, error.message)
    rude = false
    assert_match(/\A\h{8}-/, client.enqueue(queue: "q", payload: "x"))
    rude = nil
    wrong = peer { |caller, _, id, _| caller.send("EnqueueResult", id, results: []) }
    error = assert_raises(Fila::ConnectionLostError) { connect(wrong.address, **PAUSES).enqueue(queue: "q", payload: "x") }
    assert_match(/0 for 1 items/, error.message)
  end

  def test_without_reconnect_the_client_ends_and_says_why
    peer = peer { |caller, *| caller.close }
    events = Queue.new
    client = connect(peer.address, reconnect: false, on_event: ->(event) { events << event })
    assert_raises(Fila::ConnectionLostError) { client.enqueue(queue: "q", payload: "x") }
    assert_raises(Fila::ConnectionLostError) { client.enqueue(queue: "q", payload: "x") }
    assert_predicate client, :closed?
    told = eventually("closed is told") { events.pop.then { |event| event if event.kind == :closed } }
    assert_instance_of Fila::ConnectionLostError, told.error
  end

  def test_a_stream_refused_for_the_moment_is_opened_again
    times = 0
    busy = peer do |caller, name, id, body|
      caller.accept(name, id, body)
      caller.error(id, Fila::NodeNotReadyError, "starting") if name == "Consume" && (times += 1) == 1
    end
    consumer = connect(busy.address).subscribe(queue: "q")
    eventually("a second Consume") { times == 2 }
    refute_predicate consumer, :closed?
  end

  def test_drain_finishes_what_is_under_way
    client = connect(batch_mode: :linger, linger: 60)
    queue = new_queue(client)
    other = connect
    other.enqueue_many(Array.new(10) { |n| { queue: queue, payload: n.to_s } })
    output = new_queue(client)
    working = Queue.new
    go_on = Queue.new
    pool = client.pool(queue: queue, threads: 1, prefetch: 5) do |message|
      working << message
      go_on.pop
    end
    working.pop
    lingering = Array.new(5) { |n| Thread.new { client.enqueue(queue: output, payload: n.to_s) } }
    eventually("they linger") { lingering.all?(&:stop?) }
    draining = Thread.new { client.drain(timeout: PATIENCE) }
    lingering.each { |thread| assert_match(/\A\h{8}-/, thread.value) }
    assert_raises(Fila::ClosedError) { client.enqueue(queue: output, payload: "late") }
    assert_raises(Fila::ClosedError) { client.subscribe(queue: output) }
    refute draining.join(0.1), "the handler is at work"
    go_on << nil
    draining.join
    pool.join(timeout: PATIENCE)
    assert_predicate client, :closed?
    eventually("one was handled, nine are at hand") do
      stats = other.get_stats(queue: queue)
      stats.depth == 9 && stats.in_flight.zero?
    end
    assert_nil client.drain
  end

  def test_a_drain_that_takes_too_long_closes_and_says_so
    client = connect
    queue = new_queue(client)
    client.enqueue(queue: queue, payload: "x")
    go_on = Queue.new
    started = Queue.new
    pool = client.pool(queue: queue, threads: 1) do
      started << 1
      go_on.pop
    end
    started.pop
    assert_raises(Fila::TimeoutError) { client.drain(timeout: 0.1) }
    assert_predicate client, :closed?
    go_on << nil
    pool.join(timeout: PATIENCE)
  end

  def test_drain_inside_a_consuming_block_does_not_wait_for_itself
    client = connect
    queue = new_queue(client)
    client.enqueue(queue: queue, payload: "x")
    client.consume(queue: queue) do |message|
      message.ack
      client.drain(timeout: PATIENCE)
    end
    assert_predicate client, :closed?
  end

  def test_close_leaves_nobody_waiting_and_hands_back_what_is_leased
    client = connect
    queue = new_queue(client)
    client.enqueue_many(Array.new(3) { |n| { queue: queue, payload: n.to_s } })
    consumer = client.subscribe(queue: queue, prefetch: 2)
    receive(consumer)
    waiting = Thread.new { consumer.each(&:itself) }
    client.close
    assert_same consumer, waiting.value
    assert_nil consumer.receive
    assert_empty consumer.receive_many(5)
    assert_raises(Fila::ClosedError) { client.get_stats(queue: queue) }
    assert_nil client.close
    connect.subscribe(queue: queue) do |other|
      assert_equal([["0", 0], ["1", 0], ["2", 0]], Array.new(3) { receive(other).then { |message| [message.payload, message.attempt_count] } })
    end
  end

  def test_a_failing_hook_harms_nobody
    client = nil
    _, err = capture_io do
      client = connect(on_event: ->(_) { raise "hook" })
      new_queue(client)
      client.close
    end
    assert_match(/a hook failed/, err)
    assert_predicate client, :closed?
  end

  private

  def producing(client, queue, count, stored)
    Array.new(8) do
      Thread.new do
        count.times do
          stored << client.enqueue(queue: queue, payload: "x")
        rescue Fila::ConnectionLostError
          nil
        end
      end
    end
  end
end
