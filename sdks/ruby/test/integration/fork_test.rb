# frozen_string_literal: true

require_relative "../test_helper"

class ForkTest < FilaTest
  def test_a_forked_child_opens_a_connection_of_its_own_and_the_parents_lives_on
    client = connect
    queue = new_queue(client)
    consumer = client.subscribe(queue: queue)
    in_child = child do
      id = client.enqueue(queue: queue, payload: "child")
      foreign = assert_raises(Fila::ClosedError) { consumer.receive(timeout: 0) }
      consumer.close
      client.close
      [id, foreign.message]
    end
    assert_match(/\A\h{8}-/, in_child[0])
    assert_match(/belongs to process #{Process.pid}/, in_child[1])
    message = receive(consumer)
    assert_equal "child", message.payload
    message.ack
    client.enqueue(queue: queue, payload: "parent")
    assert_equal "parent", receive(consumer).payload
  end

  def test_a_child_that_ends_without_using_the_client_does_not_disturb_the_parent
    client = connect
    queue = new_queue(client)
    consumer = client.subscribe(queue: queue)
    pid = fork { exit 0 } # with its at_exit handlers
    Process.wait(pid)
    client.enqueue(queue: queue, payload: "x")
    assert_equal "x", receive(consumer).payload
  end

  def test_a_message_of_the_parent_is_settled_by_the_child_over_its_own_connection
    client = connect
    queue = new_queue(client)
    client.enqueue(queue: queue, payload: "x")
    consumer = client.subscribe(queue: queue)
    message = receive(consumer)
    consumer.close
    assert_equal(["ok"], child { [message.ack || "ok"] })
    eventually("it is gone") { client.get_stats(queue: queue).in_flight.zero? }
  end

  def test_a_fork_while_other_threads_use_the_client
    client = connect
    queue = new_queue(client)
    stop = false
    threads = Array.new(4) { Thread.new { client.enqueue(queue: queue, payload: "x") until stop } }
    ids = Array.new(5) { child { [client.enqueue(queue: queue, payload: "child")] } }
    stop = true
    threads.each(&:join)
    assert_equal 5, ids.uniq.size
  end

  def test_a_closed_client_stays_closed_in_the_child
    client = connect
    client.close
    assert_equal(["Fila::ClosedError"], child { [assert_raises(Fila::ClosedError) { client.list_queues }.class.name] })
  end

  def test_a_process_that_ends_hands_its_leases_back
    client = connect
    queue = new_queue(client, visibility_timeout: 600)
    client.enqueue(queue: queue, payload: "x")
    script = <<~RUBY
      client = Fila::Client.new(ARGV[0])
      consumer = client.subscribe(queue: ARGV[1])
      abort unless consumer.receive(timeout: 30)
    RUBY
    assert system(RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-rfila", "-e", script, client.address, queue)
    client.subscribe(queue: queue) { |consumer| assert_equal 0, receive(consumer).attempt_count }
  end

  private

  # What the block returns in a child process, as JSON knows it.
  def child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      writer.write(JSON.generate(yield))
      writer.close
      exit!(0)
    rescue Exception => error
      warn error.full_message
      exit!(1)
    end
    writer.close
    found = reader.read
    Process.wait(pid)
    assert_predicate $?, :success?
    JSON.parse(found)
  end
end
