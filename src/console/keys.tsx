import { TEXTS } from './texts/en.ts'

const { keys } = TEXTS.frame

/** What the script uses on every page: where it speaks, and the keys, which can be turned off. */
export function ScriptParts() {
  return (
    <>
      <footer>
        <button id="keys" class="quiet" type="button" hidden>
          {keys.title}
        </button>
      </footer>
      <div
        id="status"
        class="hidden"
        role="status"
        data-text-copy={keys.copy}
        data-text-copied={keys.copied}
      />
      <dialog aria-labelledby="keys-title">
        <h2 id="keys-title">{keys.title}</h2>
        <dl>
          {keys.list.map(([key, meaning]) => (
            <>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </>
          ))}
        </dl>
        <label class="choice">
          <input type="checkbox" checked />
          {keys.use}
        </label>
        <form method="dialog">
          <button type="submit">{keys.close}</button>
        </form>
      </dialog>
    </>
  )
}
