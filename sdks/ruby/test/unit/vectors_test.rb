# frozen_string_literal: true

require_relative "../test_helper"

# The golden vectors, both ways.
class VectorsTest < FilaTest
  Wire = Fila::Wire

  %w[control hot bulk admin].each do |file|
    define_method("test_every_whole_message_of_#{file}_encodes_and_decodes") do
      vectors(file)["vectors"].each do |vector|
        name = vector["operation"]
        bytes = written_out(vector["bytes"])
        meaning = record(name, vector["body"])
        assert_equal [vector["opcode"], vector["request_id"], meaning], decode(name, bytes), vector["name"]
        next if vector["decode_only"]

        frame = Wire::Frames.append("".b, vector["opcode"], vector["request_id"], Wire::Codec.encode(name, meaning))
        assert_equal bytes, frame, vector["name"]
      end
    end
  end

  def test_every_operation_has_a_vector
    covered = %w[control hot bulk admin].flat_map { |file| vectors(file)["vectors"].map { |vector| vector["operation"] } }

    assert_empty Wire::NAMES.values - covered
  end

  def test_malformed_bodies_are_refused_by_their_field
    vectors("malformed")["vectors"].each do |vector|
      error = assert_raises(Wire::InvalidBody, vector["name"]) do
        Wire::Codec.decode(vector["operation"], written_out(vector["body"]))
      end
      assert_equal vector["field"], error.field, vector["name"]
    end
  end

  def test_streams_are_cut_and_joined_like_the_vectors
    vectors("streams")["vectors"].each do |vector|
      bytes = written_out(vector["bytes"])
      [bytes.bytesize, 1].each do |step|
        messages, errors = feed(vector["limits"], bytes, step)
        expected = vector["messages"].map { |one| [one["opcode"], one["request_id"], written_out(one["body"])] }
        assert_equal expected, messages, "#{vector["name"]} in steps of #{step}"
        faults = vector["errors"].map { |one| [one["request_id"], one["fatal"]] }
        assert_equal faults, errors.map { |one| [one.request_id, one.fatal] }, "#{vector["name"]} in steps of #{step}"
      end
    end
  end

  def test_states_follow_the_table
    rows = vectors("states")["rows"].select { |row| row["side"] == "client" }
    refute_empty rows
    rows.each do |row|
      state = row["state"].to_sym
      following = Wire::States.following(state, row["receives"])
      row["next"] ? assert_equal(row["next"].to_sym, following, row.inspect) : assert_nil(following, row.inspect)
      assert_equal row["fatal"], Wire::States.fatal?(state), row.inspect if row["refused"]
    end
  end

  def test_the_hot_path_reads_deliveries_as_the_codec_does
    checked = 0
    each_body("Delivery") do |name, body|
      expected = Wire::Codec.decode("Delivery", body)[:messages]
      [Wire::Names.new, Wire::Names.new("orders")].each do |names|
        found = Wire::Hot.deliveries(body, names, nil, nil).map do |message|
          expected.first.keys.to_h { |field| [field, message.public_send(field)] }
        end
        assert_equal expected, found, name
        checked += 1
      end
    end
    assert_operator checked, :>, 4
  end

  # Most messages look like the one before them, and are read in one go; each of these differs in one thing.
  def test_the_hot_path_reads_what_is_alike_and_what_is_not
    alike = { id: "a" * 36, queue: "orders", headers: {}, payload: "x" * 9, fairness_key: "acme", weight: 1,
              throttle_keys: [], attempt_count: 0, enqueued_at_ms: 1, leased_at_ms: 2 }
    others = [{ id: "short" }, { queue: "other" }, { queue: "elsewhere" }, { headers: { "a" => "b" } }, { payload: "" },
              { fairness_key: "mayors" }, { fairness_key: "omni" }, { throttle_keys: ["k"] }, { attempt_count: 3 },
              { weight: 7, enqueued_at_ms: 1 << 60 }, { payload: "\xFF".b * 300 }, { headers: { "é" => "ü" }, throttle_keys: %w[a b] }]
    messages = [alike, *others.flat_map { |other| [alike, alike.merge(other), alike.merge(other), alike] }]
    body = Wire::Codec.encode("Delivery", { messages: messages })
    found = Wire::Hot.deliveries(body, Wire::Names.new("orders"), nil, nil).map do |message|
      alike.keys.to_h { |field| [field, message.public_send(field)] }
    end

    assert_equal Wire::Codec.decode("Delivery", body)[:messages], found
    assert_equal messages.map { |message| message[:payload].b }, (found.map { |message| message[:payload] })
  end

  def test_the_hot_path_reads_results_as_the_codec_does
    { "EnqueueResult" => false, "EnqueueWithResult" => true }.each do |operation, duplicates|
      each_body(operation) do |name, body|
        expected = Wire::Codec.decode(operation, body)[:results]
        results = Wire::Hot::Results.new(body, expected.size, duplicates: duplicates)
        found = expected.map { [results.advance, results.id, results.duplicate] }
        assert_equal expected.map { |one| [one[:code], one[:message_id], one.fetch(:duplicate, false)] }, found, name
      end
    end
    each_body("AckResult") do |name, body|
      expected = Wire::Codec.decode("AckResult", body)[:results]
      assert_equal expected.map { |one| one[:code] }, Wire::Hot.codes(body, expected.size).bytes, name
    end
  end

  def test_the_hot_path_refuses_a_delivery_cut_anywhere
    each_body("Delivery") do |name, body|
      next if Wire::Codec.decode("Delivery", body)[:messages].empty? || body.bytesize > 2000

      (0...body.bytesize).each do |size|
        assert_raises(Wire::InvalidBody, "#{name} cut after #{size} bytes") do
          Wire::Hot.deliveries(body.byteslice(0, size), Wire::Names.new("orders"), nil, nil)
        end
      end
    end
  end

  private

  def each_body(operation)
    bodies = %w[hot bulk].flat_map { |file| vectors(file)["vectors"] }.select { |vector| vector["operation"] == operation }
    refute_empty bodies
    bodies.each { |vector| yield vector["name"], written_out(vector["bytes"]).byteslice(10..) }
  end

  def decode(name, bytes)
    found = nil
    Wire::FrameDecoder.new.feed(bytes) { |opcode, id, body| found = [opcode, id, Wire::Codec.decode(name, body)] }
    found
  end

  def feed(limits, bytes, step)
    decoder = Wire::FrameDecoder.new(frame_bytes_max: limits["frame_bytes_max"], streams_max: limits["assembly_streams_max"],
                                     assembly_bytes_max: limits["assembly_bytes_max"])
    messages = []
    errors = []
    0.step(bytes.bytesize - 1, [step, 1].max) do |at|
      decoder.feed(bytes.byteslice(at, step)) do |*frame|
        frame.size == 1 ? errors << frame.first : messages << frame
      end
    end
    [messages, errors]
  end

  def record(name, meaning)
    Wire::Codec.layout(name).to_h do |field, type, inner, item|
      value = meaning[field.to_s]
      type = inner if type == :optional
      [field, type == :list ? value.map { |one| record(item, one) } : value(type, value)]
    end
  end

  def value(type, given)
    return given if given.nil?

    case type
    when :u64, :i64 then Integer(given)
    when :bytes then written_out(given)
    when :map then given.to_h { |pair| pair.map { |text| string(text) } }
    when :string, :maybe_string then string(given)
    when :strings then given.map { |text| string(text) }
    else given
    end
  end

  def string(given) = given.is_a?(Hash) ? given["repeat"] * given["count"] : given
end
