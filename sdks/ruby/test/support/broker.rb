# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"

# A real broker in a temporary directory.
class Broker
  ROOT = File.expand_path("../../../..", __dir__)
  READY = 60 # seconds

  attr_reader :address

  # The broker all tests share that do not harm it.
  def self.shared
    @shared ||= new.tap do |broker|
      pid = Process.pid
      Minitest.after_run { broker.remove if Process.pid == pid }
    end
  end

  # @param settings [Hash{String=>String}] environment, such as FILA_AUTH__BOOTSTRAP_APIKEY
  def initialize(settings = {})
    @settings = settings
    @directory = Dir.mktmpdir("fila-ruby-")
    probe = TCPServer.new("127.0.0.1", 0)
    @address = "127.0.0.1:#{probe.addr[1]}"
    probe.close
    start
  end

  def start
    port_file = File.join(@directory, "port")
    FileUtils.rm_f(port_file)
    own = ENV.keys.grep(/\AFILA_/).to_h { |name| [name, nil] }
    env = own.merge("FILA_SERVER__LISTEN_ADDR" => @address, "FILA_PORT_FILE" => port_file,
                    "FILA_DATA_DIR" => File.join(@directory, "data"), **@settings)
    @pid = Process.spawn(env, binary, chdir: @directory, %i[out err] => [log_file, "a"])
    deadline = now + READY
    until File.size?(port_file)
      raise "the broker did not start:\n#{File.read(log_file)}" if now > deadline || Process.wait(@pid, Process::WNOHANG)

      sleep 0.02
    end
  end

  def kill
    Process.kill(:CONT, @pid)
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @pid = nil
  end

  # Stops the process without closing its connections; {#thaw} lets it go on.
  def freeze = Process.kill(:STOP, @pid)

  def thaw = Process.kill(:CONT, @pid)

  def remove
    kill if @pid
    FileUtils.rm_rf(@directory)
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def log_file = File.join(@directory, "log")

  def binary = ENV.fetch("FILA_SERVER_BIN") { File.join(ROOT, ".venv/bin/fila-server") }
end
