# frozen_string_literal: true

# Lets a hook sort messages by tenant: one tenant with a thousand messages does not make another with ten
# wait.
#
#   ruby examples/fairness.rb [address]

require "fila"

BY_TENANT = <<~LUA
  function on_enqueue(msg)
    return { fairness_key = msg.headers["tenant"] }
  end
LUA

Fila::Client.open(ARGV.fetch(0, "localhost:5555")) do |client|
  begin
    client.delete_queue(queue: "fair")
  rescue Fila::QueueNotFoundError
    nil
  end
  client.create_queue(queue: "fair", on_enqueue: BY_TENANT)
  noisy = Array.new(1000) { { queue: "fair", payload: "", headers: { tenant: "noisy" } } }
  quiet = Array.new(10) { { queue: "fair", payload: "", headers: { tenant: "quiet" } } }
  client.enqueue_many(noisy + quiet).each(&:value!)

  handled = served = 0
  client.consume(queue: "fair", prefetch: 1) do |message|
    handled += 1
    served += 1 if message.fairness_key == "quiet"
    message.ack
    break if served == 10
  end
  puts "all ten of the quiet tenant were served among the first #{handled} of 1010"
end
