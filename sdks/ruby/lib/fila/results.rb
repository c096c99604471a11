# frozen_string_literal: true

module Fila
  # What became of one message of {Client#enqueue_many}.
  class EnqueueResult
    # @return [String, nil] the message's id, nil if it failed
    attr_reader :message_id
    # @return [Error, nil] why it failed
    attr_reader :error

    # @api private
    def initialize(message_id, duplicate, error)
      @message_id = message_id
      @duplicate = duplicate
      @error = error
    end

    # Whether the queue knew the idempotency key; the id is then the first message's.
    def duplicate? = @duplicate

    # Whether the message is stored.
    def ok? = @error.nil?

    # @return [String] the message's id
    # @raise [Error] why there is none
    def value!
      raise @error.dup if @error

      @message_id
    end
  end

  # A call whose answer is not waited for yet, see {Client#enqueue_soon}.
  class Receipt
    # @api private
    def initialize(core, call, timeout, &answer)
      @core = core
      @call = call
      @timeout = timeout
      @answer = answer
    end

    # Whether the answer is there.
    def done? = @call.done?

    # Waits for the answer. After a {TimeoutError} it may be asked again.
    # @param timeout [Numeric, nil] seconds from now; nil waits for ever
    # @return what the call that waits would have returned
    # @raise [Error] what the call that waits would have raised
    def value(timeout: @timeout)
      Options.check_timeout(timeout)
      raise ClosedError, "the receipt belongs to process #{@core.pid}" if @core.pid != Process.pid

      deadline = timeout && (Clock.now + timeout)
      @core.synchronize do
        until @call.done?
          raise @core.too_late(@call, timeout) unless @core.sleep_on(@call.condition, deadline)
        end
      end
      @answer.call(@call.results)
    end
  end

  # A line of {Client#list_queues}.
  QueueInfo = Struct.new(:name, :depth, :in_flight, :active_consumers, :leader_node_id, keyword_init: true)

  # The queues, and how many nodes the cluster has (0 for a broker that stands alone).
  QueueList = Struct.new(:queues, :cluster_node_count, keyword_init: true) do
    include Enumerable

    # Yields every {QueueInfo}.
    def each(&block) = queues.each(&block)
  end

  # What a queue is told to be: settings by name, which version of them that is, who made it, when and why.
  QueueSettings = Struct.new(:settings, :version, :made_at, :who, :note, keyword_init: true)

  # A line of {Client#list_versions}. `changed` names the settings that differ from the version before.
  QueueVersion = Struct.new(:version, :made_at, :who, :note, :changed, keyword_init: true)

  # What {Client#get_stats} tells about a queue.
  QueueStats = Struct.new(:depth, :in_flight, :active_fairness_keys, :active_consumers, :quantum, :leader_node_id,
                          :replication_count, :fairness_keys, :throttle_keys, :cost, keyword_init: true)

  # A fairness key of {QueueStats}.
  FairnessKeyStats = Struct.new(:key, :pending, :deficit, :weight, keyword_init: true)

  # A throttle key of {QueueStats}.
  ThrottleKeyStats = Struct.new(:key, :tokens, :rate_per_second, :burst, keyword_init: true)

  # A new API key. `key` is the secret and is shown only now; {#inspect} leaves it out.
  ApiKey = Struct.new(:key_id, :key, :is_superadmin, keyword_init: true) do
    # Without the secret: keys end up in logs.
    def inspect = "#<struct Fila::ApiKey key_id=#{key_id.inspect}, is_superadmin=#{is_superadmin}>"
    alias_method :to_s, :inspect
  end

  # A line of {Client#list_api_keys}. `expires_at` is nil if it never does.
  ApiKeyInfo = Struct.new(:key_id, :name, :created_at, :expires_at, :is_superadmin, keyword_init: true)

  # What a key may do: `kind` is `produce`, `consume` or `admin`, `pattern` a queue, `prefix.*` or `*`.
  Permission = Struct.new(:kind, :pattern, keyword_init: true)

  # A key's permissions.
  Acl = Struct.new(:key_id, :is_superadmin, :permissions, keyword_init: true)

  # Messages leased together under a name. `again`: the batch was open before. `arrow` is an Arrow IPC
  # stream if that was asked for, and `messages` is empty then.
  LeasedBatch = Struct.new(:name, :again, :message_count, :expires_at, :messages, :arrow, keyword_init: true)

  # What an operation on lease batches acted on.
  BatchCount = Struct.new(:batches, :messages, keyword_init: true)

  # A line of {Client#list_batches}.
  OpenBatch = Struct.new(:name, :messages, :leased_at, :expires_at, keyword_init: true)

  # A queue as of one moment, to be read in pages. `ranges` cover it without overlap.
  Snapshot = Struct.new(:token, :expires_at, :messages, :ranges, keyword_init: true)

  # A part of a {Snapshot}.
  BrowseRange = Struct.new(:start, :end, keyword_init: true)

  # One page of a snapshot. `next_start` is where the following one begins, nil when the range is read.
  Page = Struct.new(:message_count, :next_start, :messages, :arrow, keyword_init: true)

  # A message that was looked at and not taken. `state` is `:ready`, `:delayed` or `:leased`.
  BrowsedMessage = Struct.new(:id, :queue, :headers, :payload, :fairness_key, :weight, :throttle_keys,
                              :attempt_count, :enqueued_at, :ready_at, :state, keyword_init: true)
end
