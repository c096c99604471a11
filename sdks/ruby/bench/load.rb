# frozen_string_literal: true

# Produces and consumes messages in batches and prints what that cost, one JSON line for each role.
#
#   ruby bench/load.rb --addr localhost:5555 --role both --messages 100000
#
# The comparison runs producer and consumer as processes of their own.

require "json"
require "optparse"
require_relative "../lib/fila"

settings = { addr: "localhost:5555", role: "both", queue: "bench-ruby", messages: 100_000, batch: 100, size: 1024,
             in_flight: 8, prefetch: 2000 }
OptionParser.new do |options|
  options.on("--addr ADDRESS", "the broker")
  options.on("--role ROLE", %w[produce consume both], "produce, consume, or one after the other")
  options.on("--queue NAME", "made if it is not there")
  options.on("--messages N", Integer)
  options.on("--batch N", Integer, "messages in one call")
  options.on("--size BYTES", Integer, "of payload")
  options.on("--in-flight N", Integer, "calls under way at a time")
  options.on("--prefetch N", Integer, "messages delivered and not settled")
end.parse!(into: settings)
settings[:in_flight] = settings.delete(:"in-flight") || settings[:in_flight]

# Keeps so many calls under way, oldest first.
class Window
  def initialize(size)
    @size = size
    @receipts = []
  end

  def add(receipt)
    @receipts << receipt
    finish_one if @receipts.size >= @size
  end

  def finish
    finish_one until @receipts.empty?
  end

  private

  def finish_one
    results = @receipts.shift.value
    results&.each(&:value!)
  end
end

def produce(client, settings)
  payload = "x" * settings[:size]
  batch = Array.new(settings[:batch]) { { queue: settings[:queue], payload: payload } }
  window = Window.new(settings[:in_flight])
  left = settings[:messages]
  while left.positive?
    window.add(client.enqueue_many_soon(batch.first(left)))
    left -= batch.size
  end
  window.finish
end

def consume(client, settings)
  client.subscribe(queue: settings[:queue], prefetch: settings[:prefetch]) do |consumer|
    window = Window.new(settings[:in_flight])
    left = settings[:messages]
    while left.positive?
      messages = consumer.receive_many([settings[:batch], left].min)
      bytes = messages.sum { |message| message.payload.bytesize }
      raise "payloads of #{bytes} bytes" if bytes != messages.size * settings[:size]

      left -= messages.size
      window.add(client.ack_many_soon(messages))
    end
    window.finish
  end
end

# The most resident memory the process had.
def rss_mb = File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i / 1024.0

def cpu_seconds = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

Fila::Client.open(settings[:addr]) do |client|
  begin
    client.create_queue(queue: settings[:queue])
  rescue Fila::QueueAlreadyExistsError
    nil
  end
  (settings[:role] == "both" ? %w[produce consume] : [settings[:role]]).each do |role|
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    cpu = cpu_seconds
    role == "produce" ? produce(client, settings) : consume(client, settings)
    puts JSON.generate(lang: "ruby", role: role, messages: settings[:messages],
                       seconds: (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).round(3),
                       cpu_seconds: (cpu_seconds - cpu).round(3), rss_mb: rss_mb.round(1))
  end
end
