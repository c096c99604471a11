# frozen_string_literal: true

# Keeps a provider's limit: its messages are delivered at ten a second, others are not slowed down.
#
#   ruby examples/throttling.rb [address]

require "fila"

Fila::Client.open(ARGV.fetch(0, "localhost:5555")) do |client|
  begin
    client.delete_queue(queue: "calls")
  rescue Fila::QueueNotFoundError
    nil
  end
  client.create_queue(queue: "calls")
  client.set_config(key: "throttle.provider:slow", value: "10,1") # ten tokens a second, at most one saved up
  slow = Array.new(6) { { queue: "calls", payload: "slow", throttle_keys: ["provider:slow"] } }
  free = Array.new(6) { { queue: "calls", payload: "free" } }
  client.enqueue_many(slow + free).each(&:value!)

  leased = Hash.new { |times, kind| times[kind] = [] }
  client.consume(queue: "calls").with_index(1) do |message, count|
    leased[message.payload] << message.leased_at
    message.ack
    break if count == 12
  end
  took = leased["slow"].max - leased["slow"].min
  puts "six throttled calls took at least 400 ms: #{took >= 0.4}; " \
       "the free ones were done before them: #{leased["free"].max < leased["slow"].max}"
end
