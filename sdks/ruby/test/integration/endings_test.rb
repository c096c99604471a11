# frozen_string_literal: true

require_relative "../test_helper"

# How calls and consumers end when nobody means well: many deadlines in one moment, answers that cannot be
# read, connections that die with work on them.
class EndingsTest < FilaTest
  QUICK = { reconnect_pause_min: 0.001, reconnect_pause_max: 0.01 }.freeze
  AWAY = { reconnect_pause_min: 3600, reconnect_pause_max: 3600 }.freeze

  # An answer that cannot be read is no refusal: sending the messages again would store them twice.
  def test_an_answer_that_cannot_be_read_is_not_taken_for_a_refusal
    peer = peer { |caller, _, id, _| caller.raw(unreadable("EnqueueResult", id)) }
    results = connect(peer.address).enqueue_many(%w[q q r q].map { |queue| { queue: queue, payload: "x" } })
    results.each do |result|
      assert_instance_of Fila::ConnectionLostError, result.error
      assert_match(/cannot be read/, result.error.message)
    end
    assert_equal ["Enqueue"], peer.seen_names
  end

  def test_a_delivery_that_cannot_be_read_ends_the_consumer_on_both_sides
    peer = peer do |caller, name, id, body|
      caller.accept(name, id, body)
      caller.raw(unreadable("Delivery", id)) if name == "Consume"
    end
    consumer = connect(peer.address).subscribe(queue: "q")
    assert_raises(Fila::InvalidFrameError) { consumer.receive(timeout: PATIENCE) }
    eventually("the broker is told") { peer.seen_names.include?("CancelConsume") }
  end

  def test_what_is_sent_again_keeps_its_order
    stored = []
    broken = false
    peer = peer do |caller, name, id, body|
      next unless name == "EnqueueWith"

      keys = body[:messages].map { |message| message[:idempotency_key] }
      if broken
        stored.concat(keys)
        caller.accept(name, id, body)
      elsif keys.include?("199")
        broken = true
        caller.close
      end
    end
    client = connect(peer.address, batch_messages: 10, **QUICK)
    keys = Array.new(200, &:to_s)
    client.enqueue_many(keys.map { |key| { queue: "q", payload: "x", idempotency_key: key } }).each(&:value!)
    assert_equal keys, stored
  end

  def test_consumers_at_a_leader_learn_why_the_client_ended
    leader = peer { |caller, name, id, body| caller.accept(name, id, body) if name == "Consume" }
    revoked = false
    seed = peer(handshake: false) do |caller, name, id, _|
      if revoked
        caller.error(0, Fila::UnauthorizedError, "the key was revoked")
      elsif name == "Handshake"
        caller.send("HandshakeOk", id, version: 1, node_id: 0, max_frame_size: 16_777_216)
      else
        caller.error(id, Fila::NotLeaderError, "elsewhere", { "leader_addr" => leader.address })
      end
    end
    client = connect(seed.address, **QUICK)
    consumer = client.subscribe(queue: "q")
    call = Thread.new { client.enqueue(queue: "q", payload: "x") }
    call.report_on_exception = false
    eventually("the call is under way") { leader.seen_names.include?("Enqueue") }
    revoked = true
    seed.hang_up
    assert_raises(Fila::UnauthorizedError) { consumer.receive(timeout: PATIENCE) }
    assert_raises(Fila::ConnectionLostError) { call.value }
  end

  def test_what_was_sent_before_close_may_have_been_carried_out
    peer = peer()
    client = connect(peer.address)
    call = Thread.new { client.enqueue(queue: "q", payload: "x") }
    call.report_on_exception = false
    eventually("it is under way") { peer.seen_names.include?("Enqueue") }
    client.close
    assert_predicate assert_raises(Fila::ClosedError) { call.value }, :maybe_applied?
    refute_predicate assert_raises(Fila::ClosedError) { client.enqueue(queue: "q", payload: "x") }, :maybe_applied?
  end

  def test_what_was_given_up_makes_room_for_others
    peer = peer()
    client = connect(peer.address, in_flight_bytes: 100_000, **AWAY)
    peer.hang_up
    eventually("the loss is noticed") do
      client.ack(queue: "q", id: "id", timeout: 0.02)
    rescue Fila::Error => error
      error.message.include?("not connected")
    end
    10.times do
      late = assert_raises(Fila::TimeoutError) { client.enqueue(queue: "q", payload: "x" * 90_000, timeout: 0.02) }
      refute_match(/under way/, late.message)
    end
  end

  def test_a_lease_may_wait_longer_than_the_call_timeout
    witness = connect
    queue = new_queue(witness)
    client = connect(timeout: 0.3)
    producer = Thread.new do
      sleep 0.6
      witness.enqueue(queue: queue, payload: "late")
    end
    batch = client.lease_batch(queue: queue, name: "job", max_messages: 1, wait: 20, form: :count)
    producer.join
    assert_equal [1, [], nil], [batch.message_count, batch.messages, batch.arrow]
    assert_raises(ArgumentError) { client.lease_batch(queue: queue, name: "job", wait: 61) }
  end

  def test_receiving_nothing_or_less_is_refused
    client = connect
    consumer = client.subscribe(queue: new_queue(client))
    [0, -1].each { |limit| assert_raises(ArgumentError) { consumer.receive_many(limit, timeout: 0) } }
  end

  private

  # A frame whose flags nobody knows.
  def unreadable(operation, id) = [6, Fila::Wire::NAMES.key(operation), 0x80, id].pack("NCCN")
end
