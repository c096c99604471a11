// A question before something is done. The browser's own dialog keeps the focus inside.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "./api";

interface Props {
  title: string;
  yes: string;
  danger?: boolean;
  wide?: boolean;
  act?: (fields: FormData) => Promise<void>; // without: there is nothing to do but to close it
  close: () => void;
  children?: ComponentChildren;
}

export function Dialog(props: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  useLayoutEffect(() => element.current?.showModal(), []);
  const submitted = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await props.act?.(new FormData(event.currentTarget as HTMLFormElement));
      props.close();
    } catch (error) {
      setTrouble(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <dialog ref={element} class={props.wide ? "wide" : undefined} aria-labelledby="dialog-title" onClose={props.close}>
      <form onSubmit={submitted}>
        <h2 id="dialog-title">{props.title}</h2>
        {props.children}
        <p class="trouble" role="alert">
          {trouble}
        </p>
        <div class="buttons">
          {props.act && (
            <button type="button" onClick={props.close}>
              Cancel
            </button>
          )}
          <button class={props.danger ? "danger" : "primary"} disabled={busy}>
            {props.yes}
          </button>
        </div>
      </form>
    </dialog>
  );
}
