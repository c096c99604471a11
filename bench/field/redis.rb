# frozen_string_literal: true

# The load program of redis-rb: a stream and a consumer group, a pipeline for a batch.
#
#   ruby redis.rb produce|consume ADDRESS QUEUE MESSAGES

require "json"
require "redis"

BATCH = 100
GROUP = "workers"
PAYLOAD = ("x" * 1024).freeze

def produce(redis, queue, messages)
  (messages / BATCH).times do
    redis.pipelined { |pipeline| BATCH.times { pipeline.xadd(queue, { p: PAYLOAD }) } }
  end
end

def consume(redis, queue, messages)
  left = messages
  ids = []
  until left.zero?
    found = redis.pipelined do |pipeline|
      pipeline.xack(queue, GROUP, ids) unless ids.empty?
      pipeline.xreadgroup(GROUP, "one", queue, ">", count: BATCH, block: 1000)
    end.last
    entries = found.fetch(queue, [])
    raise "a payload is not what was sent" unless entries.all? { |_, fields| fields["p"].bytesize == PAYLOAD.bytesize }

    ids = entries.map(&:first)
    left -= ids.size
  end
  redis.xack(queue, GROUP, ids)
end

role, address, queue, count = ARGV
host, port = address.split(":")
redis = Redis.new(host: host, port: port.to_i)
messages = count.to_i
began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
role == "produce" ? produce(redis, queue, messages) : consume(redis, queue, messages)
puts JSON.generate(lang: "redis-rb", role: role, messages: messages,
                   seconds: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began,
                   cpu_seconds: Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu,
                   rss_mb: File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i / 1024.0)
