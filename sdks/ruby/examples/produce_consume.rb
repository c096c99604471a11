# frozen_string_literal: true

# Stores ten messages and consumes them.
#
#   ruby examples/produce_consume.rb [address]

require "fila"

Fila::Client.open(ARGV.fetch(0, "localhost:5555")) do |client|
  begin
    client.create_queue(queue: "hello")
  rescue Fila::QueueAlreadyExistsError
    nil
  end
  10.times do |n|
    id = client.enqueue(queue: "hello", payload: "message #{n}", headers: { n: n.to_s })
    puts "stored #{id}"
  end
  client.consume(queue: "hello", prefetch: 5).with_index(1) do |message, count|
    puts "received #{message.payload}"
    message.ack
    break if count == 10
  end
end
