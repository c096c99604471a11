// Dark or light: the system's wish until the reader makes a choice of their own.
import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";
const STORED = "fila.theme";
const wished = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function theme(): Theme {
  const stored = read();
  return stored ?? (wished.matches ? "dark" : "light");
}

export function turnTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(STORED, next);
  } catch {
    // A browser that keeps nothing still changes for now.
  }
  chosen = next;
  apply();
}

export function useTheme(): Theme {
  const [now, setNow] = useState(theme);
  useEffect(() => {
    const changed = () => setNow(theme());
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return now;
}

let chosen: Theme | null = null;

function read(): Theme | null {
  if (chosen) return chosen;
  try {
    const stored = localStorage.getItem(STORED);
    return stored === "dark" || stored === "light" ? stored : null;
  } catch {
    return null;
  }
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme();
  for (const listener of listeners) listener();
}

wished.addEventListener("change", apply);
apply();
