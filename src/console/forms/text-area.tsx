import { Field } from '../../platform/html/components.tsx'

/** A labelled field for a sentence or two. It is focused when it has a problem. */
export function TextArea(props: {
  name: string
  label: string
  hint?: string | undefined
  value: string | undefined
  problem?: string | undefined
  required?: boolean
}) {
  const { name, label, hint, value = '', problem, required } = props
  return (
    <Field name={name} label={label} hint={hint} problem={problem}>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={2}
          maxlength={500}
          required={required}
          autofocus={problem !== undefined}
        >
          {value}
        </textarea>
      )}
    </Field>
  )
}
