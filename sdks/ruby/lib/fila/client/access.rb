# frozen_string_literal: true

module Fila
  class Client
    # API keys and what they may do.
    module Access
      # @param name [String]
      # @param expires_at [Time, nil] nil means never
      # @param superadmin [Boolean] may do everything
      # @return [ApiKey] with the secret, which is shown only now
      def create_api_key(name:, expires_at: nil, superadmin: false, timeout: @timeout)
        expires_at_ms = expires_at ? [(expires_at.to_r * 1000).to_i, 1].max : 0
        found = ask("CreateApiKey", { name: name, expires_at_ms: expires_at_ms, is_superadmin: superadmin },
                    what: "create API key \"#{name}\"", subject: "API key \"#{name}\"", timeout: timeout)
        ApiKey.new(key_id: found[:key_id], key: found[:key], is_superadmin: found[:is_superadmin])
      end

      # @param key_id [String]
      # @return [void]
      def revoke_api_key(key_id:, timeout: @timeout)
        ask_key("RevokeApiKey", key_id, what: "revoke", timeout: timeout)
        nil
      end

      # @return [Array<ApiKeyInfo>]
      def list_api_keys(timeout: @timeout)
        ask("ListApiKeys", {}, what: "list API keys", timeout: timeout, repeatable: true)[:keys].map do |key|
          ends = key[:expires_at_ms]
          ApiKeyInfo.new(key_id: key[:key_id], name: key[:name], created_at: time_of(key[:created_at_ms]),
                         expires_at: (time_of(ends) unless ends.zero?), is_superadmin: key[:is_superadmin])
        end
      end

      # Replaces what a key may do.
      # @param key_id [String]
      # @param permissions [Array<Permission, Array(String, String)>] kind and pattern of each
      # @return [void]
      def set_acl(key_id:, permissions:, timeout: @timeout)
        granted = permissions.map do |permission|
          kind, pattern = permission.to_a
          { kind: kind.to_s, pattern: pattern }
        end
        ask_key("SetAcl", key_id, { permissions: granted }, what: "set ACL of", timeout: timeout)
        nil
      end

      # @param key_id [String]
      # @return [Acl]
      def get_acl(key_id:, timeout: @timeout)
        found = ask_key("GetAcl", key_id, what: "ACL of", timeout: timeout, repeatable: true)
        Acl.new(key_id: found[:key_id], is_superadmin: found[:is_superadmin],
                permissions: found[:permissions].map { |permission| Permission.new(**permission) })
      end

      private

      def ask_key(operation, key_id, fields = {}, what:, timeout:, repeatable: false)
        ask(operation, { key_id: key_id, **fields }, what: "#{what} API key \"#{key_id}\"",
                                                     subject: "API key \"#{key_id}\"", timeout: timeout,
                                                     repeatable: repeatable)
      end
    end
  end
end
