import { Field } from '../../platform/html/components.tsx'
import type { ConsoleRequest } from '../env.ts'
import { readDraft } from '../forms/draft.ts'
import { Form } from '../forms/form.tsx'
import { t } from '../view.ts'

/** A form that was refused: its id, what was entered, and what is wrong with it. */
export type Draft = { id: string; reason: string; problem: string }

/** An action that takes a reason, folded away until it is wanted. */
export function ReasonForm(props: {
  c: ConsoleRequest
  id: string
  action: string
  fields?: Readonly<Record<string, string>>
  /** The text that unfolds it, and that of its button. */
  title: string
  submit: string
  hint: string
  draft: Draft | undefined
}) {
  const { c, id, action, fields = {}, title, submit, hint, draft } = props
  const own = draft?.id === id ? draft : undefined
  const reason = own?.reason ?? readDraft(c, action).reason
  return (
    <details id={id} open={reason !== undefined}>
      <summary>{title}</summary>
      <Form c={c} action={action} stacked fields={fields}>
        <Field
          id={`reason-${id}`}
          name="reason"
          label={t('field.reason')}
          hint={hint}
          problem={own?.problem}
        >
          {(attributes) => (
            <input
              {...attributes}
              type="text"
              maxlength={500}
              required
              autocomplete="off"
              value={reason}
              autofocus={reason !== undefined}
            />
          )}
        </Field>
        <button type="submit">{submit}</button>
      </Form>
    </details>
  )
}
