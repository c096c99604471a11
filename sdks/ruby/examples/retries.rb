# frozen_string_literal: true

# Lets a hook decide what happens to failed messages: two more attempts, then the dead letter queue, from
# which they are moved back. The handler runs in a pool of threads.
#
#   ruby examples/retries.rb [address]

require "fila"

TWICE = <<~LUA
  function on_failure(msg)
    if msg.attempts >= 3 then
      return { action = "dlq" }
    end
    return { action = "retry", delay_ms = 50 * msg.attempts }
  end
LUA

Fila::Client.open(ARGV.fetch(0, "localhost:5555")) do |client|
  begin
    client.delete_queue(queue: "jobs")
  rescue Fila::QueueNotFoundError
    nil
  end
  client.create_queue(queue: "jobs", on_failure: TWICE)
  client.enqueue(queue: "jobs", payload: "job")

  broken = true
  done = Thread::Queue.new
  pool = client.pool(queue: "jobs", threads: 2) do |message|
    if broken
      puts "attempt #{message.attempt_count} fails"
      raise "the printer is on fire"
    end
    puts "#{message.payload} is done"
    done << message.id
  end

  sleep 0.02 until client.get_stats(queue: "jobs.dlq").depth == 1
  broken = false
  moved = client.redrive(queue: "jobs.dlq")
  done.pop
  pool.stop
  puts "#{moved} dead letter was moved back and done"
end
