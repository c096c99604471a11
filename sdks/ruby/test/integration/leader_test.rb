# frozen_string_literal: true

require_relative "../test_helper"

# Redirects come from scripted peers: a lone broker leads everything.
class LeaderTest < FilaTest
  PAUSES = { reconnect_pause_min: 0.001, reconnect_pause_max: 0.01 }.freeze

  # Mistake of earlier clients: a batcher that keeps the old connection after a redirect.
  def test_calls_batches_and_consumers_move_to_the_leader
    leader = peer { |caller, name, id, body| caller.accept(name, id, body) }
    follower = follower_of(leader)
    events = Queue.new
    client = connect(follower.address, api_key: "secret", on_event: ->(event) { events << event })
    results = client.enqueue_many([{ queue: "q", payload: "1" }, { queue: "other", payload: "2" }])
    assert results.all?(&:ok?)
    assert_equal 7, client.get_stats(queue: "q").depth
    consumer = client.subscribe(queue: "q")
    follower.seen_names
    client.enqueue(queue: "q", payload: "3")
    client.ack(queue: "q", id: "x")
    refute_predicate consumer, :closed?
    assert_empty follower.seen_names, "what is known to be led elsewhere goes there at once"
    names = leader.seen_names
    assert_equal %w[Ack Consume Enqueue GetStats], names.uniq.sort
    assert_equal "secret", leader.keys.pop
    kinds = Array.new(events.size) { events.pop }.map { |event| [event.kind, event.address] }
    assert_includes kinds, [:redirected, leader.address]
    assert_includes kinds, [:connected, leader.address]
  end

  def test_a_leader_that_goes_away_gives_everything_back_to_the_seed
    leads_itself = false
    leader = peer { |caller, name, id, body| caller.accept(name, id, body) }
    seed = peer do |caller, name, id, body|
      leads_itself ? caller.accept(name, id, body) : caller.error(id, Fila::NotLeaderError, "", { "leader_addr" => leader.address })
    end
    client = connect(seed.address, **PAUSES)
    consumer = client.subscribe(queue: "q")
    client.enqueue(queue: "q", payload: "x")
    leads_itself = true
    seed.seen_names
    leader.close
    eventually("the consumer is at the seed") { seed.seen_names.include?("Consume") }
    assert_match(/\A\h{8}-/, client.enqueue(queue: "q", payload: "x"))
    refute_predicate consumer, :closed?
  end

  def test_a_redirect_without_an_address_or_in_circles_is_an_error
    lost = peer { |caller, _, id, _| caller.error(id, Fila::NotLeaderError, "who knows") }
    error = assert_raises(Fila::NotLeaderError) { connect(lost.address).enqueue(queue: "q", payload: "x") }
    assert_equal ["who knows", true, nil], [error.message, error.retryable?, error.leader_address]
    addresses = []
    circle = Array.new(2) do |n|
      peer { |caller, _, id, _| caller.error(id, Fila::NotLeaderError, "not me", { "leader_addr" => addresses[1 - n] }) }
    end
    addresses.replace(circle.map(&:address))
    client = connect(circle[0].address)
    assert_raises(Fila::NotLeaderError) { client.enqueue(queue: "q", payload: "x") }
    assert_raises(Fila::NotLeaderError) { client.get_stats(queue: "q") }
    assert_raises(Fila::NotLeaderError) { client.subscribe(queue: "q") }
  end

  # Mistake of earlier clients: a redirect that falls back to plaintext with the API key.
  def test_a_redirect_never_leads_into_plaintext
    authority = Authority.new("test")
    clear = peer { |caller, name, id, body| caller.accept(name, id, body) }
    misled = peer(tls: server_context(authority)) do |caller, _, id, _|
      caller.error(id, Fila::NotLeaderError, "", { "leader_addr" => clear.address })
    end
    client = connect(misled.address, ca_cert: authority.pem, api_key: "secret", connect_timeout: 0.3, **PAUSES)
    assert_raises(Fila::Error) { client.enqueue(queue: "q", payload: "x") }
    assert_equal "secret", misled.keys.pop
    assert_empty clear.keys
    assert_empty clear.seen
    firsts = Array.new(clear.first_bytes.size) { clear.first_bytes.pop }
    assert_equal [0x16], firsts.uniq, "only TLS handshakes were tried"
  end

  private

  def follower_of(leader)
    peer { |caller, _, id, _| caller.error(id, Fila::NotLeaderError, "not me", { "leader_addr" => leader.address }) }
  end

  def server_context(authority)
    certificate, key = authority.issue("server")
    OpenSSL::SSL::SSLContext.new.tap do |context|
      context.add_certificate(OpenSSL::X509::Certificate.new(certificate), OpenSSL::PKey.read(key))
      context.alpn_select_cb = ->(names) { names.first }
    end
  end
end
