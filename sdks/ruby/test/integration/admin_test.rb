# frozen_string_literal: true

require_relative "../test_helper"

class AdminTest < FilaTest
  SECRET = "0123456789abcdef0123456789abcdef"

  def test_queues_are_made_listed_and_deleted
    client = connect
    queue = new_queue(client, visibility_timeout: 5)
    error = assert_raises(Fila::QueueAlreadyExistsError) { client.create_queue(queue: queue) }
    assert_match(/#{queue}/, error.message)
    listed = client.list_queues
    assert_includes listed.map(&:name), "#{queue}.dlq"
    assert_equal 0, listed.cluster_node_count, "it stands alone"
    error = assert_raises(Fila::LuaCompilationError) { client.create_queue(queue: "#{queue}-lua", on_enqueue: "function (") }
    refute_empty error.message
    assert_raises(Fila::InvalidConfigValueError) { client.create_queue(queue: "#{queue}-short", visibility_timeout: 0.001) }
    assert_nil client.delete_queue(queue: queue)
    assert_raises(Fila::QueueNotFoundError) { client.get_stats(queue: queue) }
    assert_raises(Fila::QueueNotFoundError) { client.delete_queue(queue: queue) }
  end

  def test_a_queue_is_changed_while_it_works_and_brought_back
    client = connect
    queue = new_queue(client, max_attempts: 7)
    settings = { max_attempts: 3, fail_mode: "reject" }
    assert_equal 2, client.update_queue(queue: queue, settings: settings, expected_version: 1, note: "fewer")
    found = client.get_queue(queue: queue)
    assert_equal [2, "fewer", "3", "reject"],
                 [found.version, found.note, found.settings["max_attempts"], found.settings["fail_mode"]]
    assert_raises(Fila::VersionConflictError) do
      client.update_queue(queue: queue, settings: { max_attempts: 4 }, expected_version: 1)
    end
    assert_raises(Fila::InvalidConfigValueError) { client.update_queue(queue: queue, settings: { colour: "red" }) }
    assert_equal 3, client.update_queue(queue: queue, from_version: 1)
    assert_equal "7", client.get_queue(queue: queue, version: 1).settings["max_attempts"]
    assert_equal [3, 2, 1], client.list_versions(queue: queue).map(&:version)
    assert_equal %w[max_attempts fail_mode], client.list_versions(queue: queue)[1].changed
  end

  def test_stats_tell_about_keys
    client = connect
    queue = new_queue(client)
    client.set_config(key: "throttle.stats:a", value: "5,2")
    client.enqueue(queue: queue, payload: "x", fairness_key: "acme", weight: 4, throttle_keys: ["stats:a"])
    stats = client.get_stats(queue: queue)
    assert_equal [["acme", 1, 4]], (stats.fairness_keys.map { |key| [key.key, key.pending, key.weight] })
    assert_equal [["stats:a", 5.0, 2.0]], (stats.throttle_keys.map { |key| [key.key, key.rate_per_second, key.burst] })
  end

  def test_runtime_settings_are_set_read_and_removed
    client = connect
    key = "throttle.test:#{rand(1 << 40)}"
    assert_nil client.get_config(key: key)
    client.set_config(key: key, value: "10,1")
    assert_equal "10,1", client.get_config(key: key)
    assert_equal({ key => "10,1" }, client.list_config(prefix: key))
    client.set_config(key: key, value: nil)
    assert_nil client.get_config(key: key)
    assert_raises(Fila::InvalidConfigValueError) { client.set_config(key: key, value: "fast") }
  end

  def test_a_paused_queue_explains_itself_and_a_purged_one_is_empty
    client = connect
    queue = new_queue(client)
    client.pause_queue(queue: queue, reason: "maintenance")
    3.times { client.enqueue(queue: queue, payload: "x", fairness_key: "a") }
    assert_match(/maintenance/, client.explain(queue: queue).to_s)
    client.subscribe(queue: queue) do |consumer|
      assert_nil consumer.receive(timeout: 0.2)
      client.resume_queue(queue: queue)
      receive(consumer).ack
    end
    client.pause_key(queue: queue, fairness_key: "a", reason: "noisy")
    assert_match(/noisy/, client.explain(queue: queue, fairness_key: "a").to_s)
    client.resume_key(queue: queue, fairness_key: "a")
    assert_equal 2, client.purge(queue: queue, fairness_key: "a")
    assert_equal 0, client.purge(queue: queue)
  end

  def test_dead_letters_are_moved_back
    client = connect
    queue = new_queue(client, on_failure: 'function on_failure(msg) return { action = "dlq" } end')
    client.enqueue(queue: queue, payload: "x")
    client.subscribe(queue: queue) do |consumer|
      receive(consumer).nack("broken")
      eventually("it is dead") { client.get_stats(queue: "#{queue}.dlq").depth == 1 }
      assert_equal 1, client.redrive(queue: "#{queue}.dlq")
      receive(consumer).ack
    end
    assert_raises(Fila::NotADLQError) { client.redrive(queue: queue) }
  end

  def test_lease_batches_are_the_same_for_whoever_asks_again
    client = connect
    queue = new_queue(client)
    client.enqueue_many(Array.new(5) { |n| { queue: queue, payload: n.to_s } })
    first = client.lease_batch(queue: queue, name: "s/1", max_messages: 3, wait: 1, visibility: 60)
    again = connect.lease_batch(queue: queue, name: "s/1")
    assert_equal %w[0 1 2], first.messages.map(&:payload)
    assert_equal [false, true, 3], [first.again, again.again, again.message_count]
    assert_equal first.messages.map(&:id), again.messages.map(&:id)
    assert_equal(["s/1"], client.list_batches(queue: queue).map(&:name))
    assert_equal 1, client.extend_batch(queue: queue, name: "s/1", visibility: 120).batches
    first.messages.first.ack
    assert_equal [1, 2], client.ack_batch(queue: queue, name: "s", below: 2).to_a
    client.lease_batch(queue: queue, name: "s/2", max_messages: 10)
    assert_equal 2, client.release_batch(queue: queue, name: "s/2").messages
    assert_raises(Fila::BatchNotFoundError) { client.lease_batch(queue: queue, name: "s/1") }
    assert_raises(ArgumentError) { client.lease_batch(queue: queue, name: "s/3", form: :xml) }
  end

  def test_browsing_takes_nothing
    client = connect
    queue = new_queue(client)
    client.enqueue_many(Array.new(50) { |n| { queue: queue, payload: n.to_s, headers: { n: n.to_s } } })
    client.enqueue(queue: queue, payload: "late", delay: 3600)
    assert_equal Array.new(50, &:to_s) + ["late"], client.browse(queue: queue).map(&:payload)
    delayed = client.browse(queue: queue, states: [:delayed]).to_a
    assert_equal([%w[late], [:delayed]], [delayed.map(&:payload), delayed.map(&:state)])
    assert_operator delayed.first.ready_at, :>, Time.now + 1800
    assert_equal "7", client.browse(queue: queue).first(8).last.headers["n"]
    snapshot = client.browse_open(queue: queue, parts: 4)
    assert_equal 51, snapshot.messages
    client.browse_close(token: snapshot.token)
    assert_raises(Fila::SnapshotExpiredError) { client.browse_page(token: snapshot.token, range: snapshot.ranges.first) }
    assert_equal 51, client.get_stats(queue: queue).depth
  end

  def test_keys_have_permissions_and_refusals_name_them
    broker = broker("FILA_AUTH__BOOTSTRAP_APIKEY" => SECRET)
    assert_raises(Fila::UnauthorizedError) { connect(broker.address) }
    assert_raises(Fila::UnauthorizedError) { connect(broker.address, api_key: "wrong") }
    admin = connect(broker.address, api_key: SECRET)
    refute_includes admin.inspect, SECRET
    mine = new_queue(admin)
    other = new_queue(admin)
    key = admin.create_api_key(name: "billing", expires_at: Time.now + 3600)
    refute_includes key.inspect, key.key
    admin.set_acl(key_id: key.key_id, permissions: [["produce", mine], Fila::Permission.new(kind: "consume", pattern: mine)])
    assert_equal [["produce", mine], ["consume", mine]], admin.get_acl(key_id: key.key_id).permissions.map(&:to_a)
    info = admin.list_api_keys.find { |one| one.key_id == key.key_id }
    assert_equal "billing", info.name
    assert_in_delta Time.now + 3600, info.expires_at, 600
    check_permissions(connect(broker.address, api_key: key.key), admin, key, mine, other)
  end

  private

  def check_permissions(client, admin, key, mine, other)
    results = client.enqueue_many([mine, other, mine].map { |queue| { queue: queue, payload: "x" } })
    assert_equal [true, false, true], results.map(&:ok?), "the broker refuses the frame, the client sends its items apart"
    assert_instance_of Fila::ForbiddenError, results[1].error
    assert_match(/produce/, results[1].error.message)
    consumer = client.subscribe(queue: mine)
    receive(consumer)
    admin.revoke_api_key(key_id: key.key_id)
    assert_raises(Fila::UnauthorizedError) { receive(consumer) while true }
    assert_raises(Fila::UnauthorizedError) { client.enqueue(queue: mine, payload: "x") }
    assert_predicate client, :closed?
    assert_raises(Fila::ApiKeyNotFoundError) { admin.revoke_api_key(key_id: key.key_id) }
  end
end
