# frozen_string_literal: true

require "openssl"

# An authority of the tests' own, and certificates it signs.
class Authority
  attr_reader :certificate

  def initialize(name)
    @key = OpenSSL::PKey::EC.generate("prime256v1")
    @certificate = make(name, @key, self_signed: true)
  end

  def pem = @certificate.to_pem

  # @return [Array(String, String)] certificate and key as PEM text
  def issue(name)
    key = OpenSSL::PKey::EC.generate("prime256v1")
    [make(name, key).to_pem, key.to_pem]
  end

  private

  def make(name, key, self_signed: false)
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = rand(1 << 64)
    certificate.subject = OpenSSL::X509::Name.new([["CN", name]])
    certificate.issuer = self_signed ? certificate.subject : @certificate.subject
    certificate.public_key = key
    certificate.not_before = Time.now - 3600
    certificate.not_after = Time.now + 3600
    factory = OpenSSL::X509::ExtensionFactory.new(self_signed ? certificate : @certificate, certificate)
    extensions_of(self_signed).each { |extension| certificate.add_extension(factory.create_extension(*extension)) }
    certificate.sign(@key, "SHA256")
  end

  def extensions_of(self_signed)
    return [["basicConstraints", "CA:TRUE", true], ["keyUsage", "keyCertSign", true]] if self_signed

    [["subjectAltName", "IP:127.0.0.1,DNS:localhost"], ["extendedKeyUsage", "serverAuth,clientAuth"]]
  end
end
