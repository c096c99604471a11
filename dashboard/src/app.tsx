// The frame around all pages: who is signed in, where we are, keys that work everywhere.
import { useCallback, useEffect, useState } from "preact/hooks";
import { Refusal, type Session, messageOf, post, readSession } from "./api";
import { Help, useShortcuts } from "./keyboard";
import { KeysPage } from "./keys";
import type { Link } from "./live";
import { Login } from "./login";
import { MessagesPage } from "./messages";
import { Overview } from "./overview";
import { Name, Trouble } from "./parts";
import { PipelinePage } from "./pipeline";
import { QueuePage } from "./queue";
import { useRoute } from "./route";
import { SettingsPage } from "./settings";
import { TenantPage } from "./tenant";
import { turnTheme, useTheme } from "./theme";

const RETRY_MS = 3000;

/** What a page tells the frame. */
export interface Frame {
  linked: (link: Link) => void;
  refused: (error: unknown) => string; // what to show; asks to sign in where that is the answer
}

export function App() {
  const route = useRoute();
  const [session, setSession] = useState<Session | null>(null);
  const [trouble, setTrouble] = useState("");
  const [link, setLink] = useState<Link>("connecting");
  const [help, setHelp] = useState(false);
  useShortcuts(() => setHelp(true));

  const load = useCallback(() => {
    readSession().then(
      (found) => {
        setSession(found);
        setTrouble("");
      },
      (error) => {
        setTrouble(messageOf(error));
        setTimeout(load, RETRY_MS);
      },
    );
  }, []);
  useEffect(load, [load]);

  const refused = useCallback(
    (error: unknown) => {
      if (error instanceof Refusal && error.status === 401) load();
      return messageOf(error);
    },
    [load],
  );
  const frame: Frame = { linked: setLink, refused };
  const inside = session !== null && (session.signed_in || !session.auth);
  // A page starts anew for another queue or tenant.
  const key = `${route.page}\n${route.queue}\n${route.key}`;

  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Bar session={inside ? session : null} link={link} help={() => setHelp(true)} left={load} />
      {trouble && <Trouble text={trouble} />}
      {session && !inside && <Login entered={setSession} />}
      {inside && route.page === "overview" && <Overview frame={frame} />}
      {inside && route.page === "queue" && <QueuePage key={key} frame={frame} name={route.queue} />}
      {inside && route.page === "tenant" && (
        <TenantPage key={key} frame={frame} queue={route.queue} refer={route.key} />
      )}
      {inside && route.page === "messages" && (
        <MessagesPage key={key} frame={frame} queue={route.queue} refer={route.key} />
      )}
      {inside && route.page === "settings" && <SettingsPage frame={frame} />}
      {inside && route.page === "keys" && <KeysPage frame={frame} auth={session.auth} />}
      {inside && route.page === "pipeline" && <PipelinePage frame={frame} />}
      {inside && route.page === "lost" && (
        <main id="main" tabIndex={-1}>
          <h1>No such page</h1>
          <p>
            <a href="/">All queues</a>
          </p>
        </main>
      )}
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

const LINKS: Record<Link, string> = {
  connecting: "connecting",
  live: "live",
  lost: "reconnecting",
  ended: "not live",
};

function Bar(props: { session: Session | null; link: Link; help: () => void; left: () => void }) {
  const theme = useTheme();
  const { session } = props;
  const leave = async () => {
    await post("logout", {}).catch(() => undefined);
    props.left();
  };
  return (
    <header class="bar">
      <a class="brand" href="/">
        <img src="/favicon.svg" alt="" width="22" height="22" />
        Fila
      </a>
      {session && (
        <span class={`link ${props.link}`} role="status">
          {LINKS[props.link]}
        </span>
      )}
      <nav aria-label="Dashboard">
        {session?.administers_all && (
          <>
            <a href="/settings">Settings</a>
            <a href="/keys">API keys</a>
            <a href="/pipeline">Pipeline</a>
          </>
        )}
        {session?.auth && (
          <span class="who">
            <Name text={session.who} />
          </span>
        )}
        <button class="plain" onClick={turnTheme} aria-keyshortcuts="t">
          {theme === "dark" ? "Light" : "Dark"}
        </button>
        <button class="plain" onClick={props.help} aria-keyshortcuts="?">
          Shortcuts
        </button>
        {session?.auth && (
          <button class="plain" onClick={leave}>
            Sign out
          </button>
        )}
      </nav>
    </header>
  );
}
