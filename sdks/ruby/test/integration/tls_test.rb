# frozen_string_literal: true

require_relative "../test_helper"

class TlsTest < FilaTest
  def setup
    @directory = Dir.mktmpdir("fila-ruby-tls-")
    @authority = Authority.new("test")
    certificate, key = @authority.issue("server")
    @settings = { "FILA_TLS__CERT_FILE" => file("cert", certificate), "FILA_TLS__KEY_FILE" => file("key", key) }
  end

  def teardown
    super
    FileUtils.rm_rf(@directory)
  end

  def test_tls_works_and_its_failures_are_fast_and_clear
    address = broker(@settings).address
    works(connect("https://#{address}", ca_cert: @authority.pem))
    works(connect("localhost:#{address[/\d+\z/]}", ca_cert: file("ca", @authority.pem)))
    began = now
    { { ca_cert: Authority.new("other").pem } => /TLS: .*certificate verify failed/, { tls: true } => /certificate verify failed/,
      {} => /TLS/ }.each do |options, text|
      error = assert_raises(Fila::ConnectFailedError, options.keys.inspect) { connect(address, **options) }
      assert_match text, error.message
    end
    error = assert_raises(Fila::ConnectFailedError) { connect(Broker.shared.address, ca_cert: @authority.pem) }
    assert_match(/TLS/, error.message)
    assert_operator now - began, :<, 10
  end

  def test_large_messages_travel_over_tls_both_ways
    client = connect(broker(@settings).address, ca_cert: @authority.pem)
    queue = new_queue(client)
    payload = Random.bytes(1024) * 5000
    client.subscribe(queue: queue) do |consumer|
      3.times { client.enqueue(queue: queue, payload: payload) }
      3.times { assert_equal payload, receive(consumer).tap(&:ack).payload }
    end
  end

  def test_a_certificate_for_another_name_is_refused
    stranger = peer(tls: OpenSSL::SSL::SSLContext.new.tap do |context|
      certificate, key = @authority.issue("server")
      context.add_certificate(OpenSSL::X509::Certificate.new(certificate), OpenSSL::PKey.read(key))
    end)
    error = assert_raises(Fila::ConnectFailedError) do
      connect("127.0.0.2:#{stranger.address[/\d+\z/]}", ca_cert: @authority.pem, connect_timeout: 5)
    end
    assert_empty stranger.keys
    refute_empty error.message
  end

  def test_client_certificates_are_shown
    address = broker(@settings.merge("FILA_TLS__CA_FILE" => file("ca", @authority.pem))).address
    certificate, key = @authority.issue("client")
    works(connect(address, ca_cert: @authority.pem, client_cert: certificate, client_key: key))
    works(connect(address, ca_cert: @authority.pem, client_cert: file("client", certificate), client_key: file("client-key", key)))
    assert_raises(Fila::ConnectFailedError) { connect(address, ca_cert: @authority.pem) }
  end

  def test_files_that_cannot_be_used_are_named
    { { ca_cert: "/nowhere/ca.pem" } => /ca_cert.*nowhere/, { ca_cert: file("empty", "") } => /ca_cert/,
      { client_cert: @authority.pem, client_key: "-----BEGIN nothing" } => /client_key/ }.each do |options, text|
      error = assert_raises(ArgumentError, options.inspect) { connect("localhost:1", **options) }
      assert_match text, error.message
    end
  end

  private

  def works(client)
    queue = new_queue(client)
    assert_match(/\A\h{8}-/, client.enqueue(queue: queue, payload: "x"))
  end

  def file(name, text) = File.join(@directory, name).tap { |path| File.write(path, text) }
end
