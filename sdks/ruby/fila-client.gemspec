# frozen_string_literal: true

require_relative "lib/fila/version"

Gem::Specification.new do |spec|
  spec.name = "fila-client"
  spec.version = Fila::VERSION
  spec.summary = "Client of Fila, a message broker with fair scheduling and per-key throttling"
  spec.description = "Enqueues and consumes messages over FIBP, one connection for all threads: batching, back-pressure, " \
                     "reconnecting with re-subscription, a thread pool, TLS and API keys. Standard library only."
  spec.authors = ["The Fila authors"]
  spec.license = "AGPL-3.0-only"
  spec.homepage = "https://github.com/faiscadev/fila"
  spec.metadata = {
    "source_code_uri" => "https://github.com/faiscadev/fila/tree/main/sdks/ruby",
    "changelog_uri" => "https://github.com/faiscadev/fila/blob/main/sdks/ruby/CHANGELOG.md",
    "rubygems_mfa_required" => "true"
  }
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "sig/**/*.rbs", "examples/*.rb", "README.md", "CHANGELOG.md", "LICENSE", ".yardopts"]
  end
  spec.require_paths = ["lib"]
end
