# frozen_string_literal: true

require "ipaddr"

module Fila
  # TLS for a client's connections; OpenSSL is loaded only when it is asked for.
  # @api private
  class TLS
    ALPN = "fila/1"

    # Reads the files now, so that a mistake is told when the client is made.
    def initialize(options)
      require "openssl"
      @options = options
      @named = context(verify_hostname: true)
      @numbered = context(verify_hostname: false) # an IP address is not a name to ask for
    end

    # @return [OpenSSL::SSL::SSLSocket] after its handshake, with the certificate checked
    def handshake(socket, address, waiter)
      numeric = ip?(address.host)
      ssl = OpenSSL::SSL::SSLSocket.new(socket, numeric ? @numbered : @named)
      ssl.hostname = address.host unless numeric
      loop do
        case ssl.connect_nonblock(exception: false)
        when :wait_readable then waiter.wait(socket, nil)
        when :wait_writable then waiter.wait(nil, socket)
        else break
        end
      end
      ssl.post_connection_check(address.host)
      ssl
    end

    private

    def context(verify_hostname:)
      context = OpenSSL::SSL::SSLContext.new
      context.min_version = OpenSSL::SSL::TLS1_2_VERSION
      context.verify_mode = OpenSSL::SSL::VERIFY_PEER
      context.verify_hostname = verify_hostname
      context.cert_store = store
      context.alpn_protocols = [ALPN]
      add_identity(context) if @options.client_cert
      context
    end

    def store
      store = OpenSSL::X509::Store.new
      return store.tap(&:set_default_paths) unless @options.ca_cert

      usable("ca_cert") do
        OpenSSL::X509::Certificate.load(pem(@options.ca_cert)).each { |certificate| store.add_cert(certificate) }
      end
      store
    end

    def add_identity(context)
      chain = usable("client_cert") { OpenSSL::X509::Certificate.load(pem(@options.client_cert)) }
      # An empty pass phrase, so that nobody is asked for one at a terminal.
      key = usable("client_key") { OpenSSL::PKey.read(pem(@options.client_key), "") }
      usable("client_key") { context.add_certificate(chain.first, key, chain.drop(1)) }
    end

    # The option is PEM text or the path of a file with it.
    def pem(given) = given.include?("-----BEGIN") ? given : File.read(given)

    def usable(option)
      yield
    rescue OpenSSL::OpenSSLError, SystemCallError, ::ArgumentError => error
      raise ArgumentError, "#{option} cannot be used: #{error.message}"
    end

    def ip?(host)
      IPAddr.new(host)
      true
    rescue IPAddr::Error
      false
    end
  end
end
