// Which page is shown: the address bar is the only memory of it. Names are query fields, never paths.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  page: "overview" | "queue" | "tenant" | "messages" | "settings" | "keys" | "pipeline" | "lost";
  queue: string;
  key: string;
}

const PATHS = ["/", "/queue", "/tenant", "/messages", "/settings", "/keys", "/pipeline"];

export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const changed = () => setRoute(read());
    const clicked = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null;
      const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
      if (!link || !plain || link.origin !== location.origin || link.hasAttribute("download")) return;
      if (link.hash && link.pathname === location.pathname && link.search === location.search) return;
      if (!PATHS.includes(link.pathname)) return;
      event.preventDefault();
      go(link.pathname + link.search + link.hash);
    };
    addEventListener("popstate", changed);
    document.addEventListener("click", clicked);
    return () => {
      removeEventListener("popstate", changed);
      document.removeEventListener("click", clicked);
    };
  }, []);
  return route;
}

export function go(path: string): void {
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
  scrollTo(0, 0);
}

export function queuePath(name: string, section = ""): string {
  return `/queue?${new URLSearchParams({ name })}${section && `#${section}`}`;
}

export function tenantPath(queue: string, ref: string): string {
  return `/tenant?${new URLSearchParams({ queue, key: ref })}`;
}

export function messagesPath(queue: string, ref = ""): string {
  return `/messages?${new URLSearchParams(ref ? { queue, key: ref } : { queue })}`;
}

function read(): Route {
  const query = new URLSearchParams(location.search);
  const key = query.get("key") ?? "";
  if (location.pathname === "/") return { page: "overview", queue: "", key };
  if (location.pathname === "/pipeline") return { page: "pipeline", queue: "", key };
  if (location.pathname === "/settings") return { page: "settings", queue: "", key };
  if (location.pathname === "/keys") return { page: "keys", queue: "", key };
  if (location.pathname === "/messages") {
    return { page: "messages", queue: query.get("queue") ?? "", key };
  }
  if (location.pathname === "/queue") return { page: "queue", queue: query.get("name") ?? "", key };
  if (location.pathname === "/tenant") {
    return { page: "tenant", queue: query.get("queue") ?? "", key };
  }
  return { page: "lost", queue: "", key };
}
