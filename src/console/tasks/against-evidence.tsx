import { t } from '../view.ts'

/** The evidence that a decision contradicts, with the confirmation. Nothing is shown before it was refused. */
export function AgainstEvidence({ evidence }: { evidence: readonly string[] }) {
  if (evidence.length === 0) return null
  return (
    <fieldset>
      <legend>{t('decisions.decide.against')}</legend>
      <ul>
        {evidence.map((text) => (
          <li>{text}</li>
        ))}
      </ul>
      <label class="choice">
        <input type="checkbox" name="againstEvidence" value="true" autofocus />
        <span>{t('decisions.decide.againstLabel')}</span>
      </label>
    </fieldset>
  )
}
