# frozen_string_literal: true

module Fila
  class Client
    # Settings of a queue that works, and their versions. Every method takes `timeout:` in seconds; nil
    # waits for ever.
    module Versions
      # Changes the settings that are named, all or none: `on_enqueue`, `on_failure`, `visibility_timeout_ms`,
      # `max_attempts`, `hook_timeout_ms`, `hook_memory_limit_bytes`, `fail_mode`. An empty text is none, or
      # the default.
      # @param queue [String]
      # @param settings [Hash{String, Symbol=>String, Integer}]
      # @param expected_version [Integer] refused if the queue has another by now; 0 for any
      # @param from_version [Integer] brings that version back, with `settings` on top; 0 for the present one
      # @param note [String] why, for the history
      # @param unrehearsed [Boolean] do not try new hooks on messages that the present ones decided
      # @return [Integer] the version that holds then
      # @raise [VersionConflictError, LuaCompilationError, InvalidConfigValueError]
      def update_queue(queue:, settings: {}, expected_version: 0, from_version: 0, note: "", unrehearsed: false,
                       timeout: @timeout)
        texts = settings.to_h { |name, value| [name.to_s, value.to_s] }
        fields = { settings: texts, expected_version: expected_version, from_version: from_version, note: note,
                   unrehearsed: unrehearsed }
        ask_queue("UpdateQueue", queue, fields, what: "update", timeout: timeout)[:version]
      end

      # @param queue [String]
      # @param version [Integer] 0 for the one that holds
      # @return [QueueSettings]
      def get_queue(queue:, version: 0, timeout: @timeout)
        found = ask_queue("GetQueue", queue, { version: version }, what: "settings of", timeout: timeout,
                                                                   repeatable: true)
        QueueSettings.new(settings: found[:settings].to_h { |one| [one[:key], one[:value]] },
                          version: found[:version], made_at: Time.at(0, found[:at_ms], :millisecond),
                          who: found[:who], note: found[:note])
      end

      # The versions of a queue's settings that are kept, the newest first.
      # @param queue [String]
      # @return [Array<QueueVersion>]
      def list_versions(queue:, timeout: @timeout)
        found = ask_queue("ListVersions", queue, what: "versions of", timeout: timeout, repeatable: true)
        found[:versions].map do |one|
          QueueVersion.new(version: one[:version], made_at: Time.at(0, one[:at_ms], :millisecond),
                           who: one[:who], note: one[:note], changed: one[:changed])
        end
      end
    end
  end
end
