# frozen_string_literal: true

require_relative "../test_helper"

class HeartbeatTest < FilaTest
  VISIBILITY = 3 # seconds; long enough that a busy machine does not miss two of three beats

  def test_a_heartbeat_keeps_what_a_slow_consumer_holds
    client = connect
    queue = new_queue(client, visibility_timeout: VISIBILITY)
    2.times { |n| client.enqueue(queue: queue, payload: n.to_s) }
    client.subscribe(queue: queue, heartbeat: true) do |consumer|
      first = consumer.receive(timeout: PATIENCE)
      sleep 2 * VISIBILITY
      stats = client.get_stats(queue: queue)
      assert_equal [0, 2], [stats.depth, stats.in_flight]
      first.ack
      second = consumer.receive(timeout: PATIENCE)
      assert_equal 0, second.attempt_count
      second.ack
    end
  end

  def test_a_heartbeat_keeps_what_handlers_have_while_the_client_drains
    client = connect
    other = connect
    queue = new_queue(client, visibility_timeout: VISIBILITY)
    client.enqueue(queue: queue, payload: "x")
    begun = Thread::Queue.new
    pool = client.pool(queue: queue, threads: 2, heartbeat: true) do |message|
      begun << message.id
      sleep 2 * VISIBILITY
      message.extend_lease # settling, and what concerns it, goes on
      message.ack
    end
    begun.pop
    client.drain(timeout: PATIENCE)
    pool.join
    stats = other.get_stats(queue: queue)
    assert_equal [0, 0, 0], [stats.depth, stats.in_flight, begun.size]
  end

  def test_a_lease_is_extended_by_hand
    client = connect
    queue = new_queue(client, visibility_timeout: VISIBILITY)
    client.enqueue(queue: queue, payload: "x")
    client.subscribe(queue: queue) do |consumer|
      message = consumer.receive(timeout: PATIENCE)
      message.extend_lease(60)
      client.extend_many(queue: queue, ids: [message.id], visibility: 60)
      sleep 1.5 * VISIBILITY
      message.ack
      assert_raises(Fila::MessageNotFoundError) { message.extend_lease }
      assert_raises(Fila::BatchError) { client.extend_many(queue: queue, ids: [message.id]) }
    end
  end

  def test_a_queue_limits_attempts_and_the_dead_letter_says_so
    client = connect
    queue = new_queue(client, max_attempts: 1)
    client.enqueue(queue: queue, payload: "poison")
    client.subscribe(queue: queue) { |consumer| consumer.receive(timeout: PATIENCE).nack("it broke") }
    client.subscribe(queue: "#{queue}.dlq") do |consumer|
      letter = consumer.receive(timeout: PATIENCE)
      assert_equal ["max_attempts", "it broke"], letter.headers.values_at("fila.dead.reason", "fila.dead.error")
      letter.ack
    end
  end
end
