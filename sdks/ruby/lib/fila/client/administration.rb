# frozen_string_literal: true

require "json"

module Fila
  class Client
    # Queues, runtime settings, dead letters, waits and stops. Every method takes `timeout:` in seconds;
    # nil waits for ever.
    module Administration
      # Makes a queue and its dead letter queue `<queue>.dlq`.
      # @param queue [String]
      # @param on_enqueue [String, nil] Lua source of the hook that sorts messages
      # @param on_failure [String, nil] Lua source of the hook that decides about failed ones
      # @param visibility_timeout [Numeric, nil] seconds a lease lasts; nil means the broker's default, 30
      # @param max_attempts [Integer, nil] failures that make a dead letter, whatever the hook says; nil: no limit
      # @param cost [String, nil] what a message costs its fairness key: "messages" (1; nil, too) or "bytes",
      #   those of its headers and payload, so that keys share bytes by weight
      # @return [String] the queue's id
      # @raise [QueueAlreadyExistsError, LuaCompilationError]
      def create_queue(queue:, on_enqueue: nil, on_failure: nil, visibility_timeout: nil, max_attempts: nil,
                       cost: nil, timeout: @timeout)
        fields = { name: queue, on_enqueue: on_enqueue, on_failure: on_failure,
                   visibility_timeout_ms: milliseconds(visibility_timeout, "visibility_timeout"),
                   max_attempts: max_attempts || (cost && 0), cost: cost }
        ask("CreateQueue", fields, what: "create queue \"#{queue}\"", subject: "queue \"#{queue}\"",
                                   queue: queue, timeout: timeout)[:queue_id]
      end

      # @param queue [String]
      # @return [void]
      def delete_queue(queue:, timeout: @timeout)
        ask_queue("DeleteQueue", queue, what: "delete", timeout: timeout)
        nil
      end

      # @return [QueueList]
      def list_queues(timeout: @timeout)
        found = ask("ListQueues", {}, what: "list queues", timeout: timeout, repeatable: true)
        QueueList.new(queues: found[:queues].map { |queue| QueueInfo.new(**queue) },
                      cluster_node_count: found[:cluster_node_count])
      end

      # @param queue [String]
      # @return [QueueStats]
      def get_stats(queue:, timeout: @timeout)
        found = ask_queue("GetStats", queue, what: "stats of", timeout: timeout, repeatable: true)
        found.delete(:code)
        found[:fairness_keys].map! { |key| FairnessKeyStats.new(**key) }
        found[:throttle_keys].map! { |key| ThrottleKeyStats.new(**key) }
        found[:cost] ||= "messages"
        QueueStats.new(**found)
      end

      # @param key [String]
      # @param value [String, nil] nil or "" removes the key
      # @return [void]
      def set_config(key:, value:, timeout: @timeout)
        ask("SetConfig", { key: key, value: value || "" }, what: "set config \"#{key}\"",
                                                           subject: "config key \"#{key}\"", timeout: timeout)
        nil
      end

      # @param key [String]
      # @return [String, nil] nil when it is not set
      def get_config(key:, timeout: @timeout)
        value = ask("GetConfig", { key: key }, what: "get config \"#{key}\"", subject: "config key \"#{key}\"",
                                               timeout: timeout, repeatable: true)[:value]
        value unless value.empty?
      end

      # @param prefix [String]
      # @return [Hash{String=>String}]
      def list_config(prefix: "", timeout: @timeout)
        found = ask("ListConfig", { prefix: prefix }, what: "list config", timeout: timeout, repeatable: true)
        found[:entries].to_h { |entry| [entry[:key], entry[:value]] }
      end

      # Moves pending messages of a dead letter queue back to its queue.
      # @param queue [String] the dead letter queue
      # @param limit [Integer] 0 for all
      # @return [Integer] how many
      def redrive(queue:, limit: 0, timeout: @timeout)
        ask("Redrive", { dlq_queue: queue, limit: limit }, what: "redrive \"#{queue}\"", subject: "queue \"#{queue}\"",
                                                           queue: queue, timeout: timeout)[:redriven]
      end

      # Why something waits: a message by its id, else the next message of a key, else the keys that wait
      # longest.
      # @param queue [String] "" for all queues, in short
      # @param fairness_key [String, nil]
      # @param message_id [String, nil]
      # @param keys_max [Integer]
      # @return [Hash] the broker's document
      def explain(queue: "", fairness_key: nil, message_id: nil, keys_max: 10, timeout: @timeout)
        fields = { fairness_key: fairness_key, message_id: message_id || "", keys_max: keys_max }
        found = ask_queue("Explain", queue, fields, what: "explain", timeout: timeout, repeatable: true)
        JSON.parse(found[:document].force_encoding(Encoding::UTF_8))
      end

      # Stops deliveries until the queue is resumed; messages are still taken in.
      # @param queue [String]
      # @param reason [String]
      # @return [void]
      def pause_queue(queue:, reason: "", timeout: @timeout)
        ask_queue("PauseQueue", queue, { reason: reason }, what: "pause", timeout: timeout)
        nil
      end

      # @param queue [String]
      # @return [void]
      def resume_queue(queue:, timeout: @timeout)
        ask_queue("ResumeQueue", queue, what: "resume", timeout: timeout)
        nil
      end

      # Stops deliveries of one fairness key.
      # @param queue [String]
      # @param fairness_key [String]
      # @param reason [String]
      # @return [void]
      def pause_key(queue:, fairness_key:, reason: "", timeout: @timeout)
        ask_queue("PauseKey", queue, { fairness_key: fairness_key, reason: reason },
                  what: "pause key \"#{fairness_key}\" of", timeout: timeout)
        nil
      end

      # @param queue [String]
      # @param fairness_key [String]
      # @return [void]
      def resume_key(queue:, fairness_key:, timeout: @timeout)
        ask_queue("ResumeKey", queue, { fairness_key: fairness_key },
                  what: "resume key \"#{fairness_key}\" of", timeout: timeout)
        nil
      end

      # Drops what is pending, of one key or of all; what is leased stays.
      # @param queue [String]
      # @param fairness_key [String, nil]
      # @return [Integer] how many
      def purge(queue:, fairness_key: nil, timeout: @timeout)
        ask_queue("Purge", queue, { fairness_key: fairness_key }, what: "purge", timeout: timeout)[:purged]
      end
    end
  end
end
