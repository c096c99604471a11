// Keys that work on every page, and the page that lists them.
import { useEffect } from "preact/hooks";
import { Dialog } from "./dialog";
import { go } from "./route";
import { turnTheme } from "./theme";

const KEYS: [string, string][] = [
  ["/", "find a queue or a tenant"],
  ["↑ ↓", "from row to row in a list; Enter opens"],
  ["PgUp PgDn Home End", "through a long list"],
  ["o", "all queues"],
  ["u", "up: from a tenant to its queue, from a queue to all"],
  ["t", "dark or light"],
  ["?", "this list"],
];

export function useShortcuts(help: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target instanceof HTMLElement ? event.target : null;
      const typing = target?.closest("input, textarea, select, dialog");
      if (typing || event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
      if (event.key === "/") {
        const field = document.querySelector<HTMLInputElement>("input[type=search]");
        field?.focus();
        field?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "o") go("/");
      else if (event.key === "u") document.querySelector<HTMLAnchorElement>("a[rel=up]")?.click();
      else if (event.key === "t") turnTheme();
      else if (event.key === "?") help();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [help]);
}

/** ↑ and ↓ move between the links that begin the rows of a list. */
export function stepRows(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const list = event.currentTarget as HTMLElement;
  const links = [...list.querySelectorAll<HTMLElement>("a.row-link")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[event.key === "ArrowDown" ? at + 1 : Math.max(at - 1, 0)];
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

export function Help({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" yes="Close" close={close}>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
