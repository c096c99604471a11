// The way in when the broker asks for API keys.
import { useState } from "preact/hooks";
import { type Session, messageOf, signIn } from "./api";

export function Login({ entered }: { entered: (session: Session) => void }) {
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  const submitted = async (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("api_key");
    if (!(field instanceof HTMLInputElement)) return;
    setBusy(true);
    try {
      entered(await signIn(field.value.trim()));
    } catch (error) {
      setTrouble(messageOf(error));
      field.select();
    } finally {
      setBusy(false);
    }
  };
  return (
    <main id="main" class="login" tabIndex={-1}>
      <form onSubmit={submitted}>
        <h1>Sign in to Fila</h1>
        <p class="note">
          This broker asks for an API key. With <code>admin</code> on a queue you see its tenants, and may redrive
          and pause.
        </p>
        <label for="api_key">API key</label>
        <input
          id="api_key"
          name="api_key"
          type="password"
          autocomplete="current-password"
          required
          autofocus
          aria-describedby="login-trouble"
        />
        <p id="login-trouble" class="trouble" role="alert">
          {trouble}
        </p>
        <button class="primary" disabled={busy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
