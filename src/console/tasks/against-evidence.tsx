import { TEXTS } from '../texts/en.ts'

const { against, againstLabel } = TEXTS.decisions.decide

/** The evidence that a decision contradicts, with the confirmation. Nothing is shown before it was refused. */
export function AgainstEvidence({ evidence }: { evidence: readonly string[] }) {
  if (evidence.length === 0) return null
  return (
    <fieldset>
      <legend>{against}</legend>
      <ul>
        {evidence.map((text) => (
          <li>{text}</li>
        ))}
      </ul>
      <label class="choice">
        <input type="checkbox" name="againstEvidence" value="true" autofocus />
        <span>{againstLabel}</span>
      </label>
    </fieldset>
  )
}
