import type { Child } from 'hono/jsx'
import { Card, Field } from '../platform/html/components.tsx'
import { List, Prose } from './cells.tsx'
import { PAGE_FIELD, TOKEN_FIELD } from './session.ts'
import { say, t, useKept, usePerson } from './view.ts'

/** A form that changes something, with the session's token, the page that it leads back to, and hidden `fields`. */
export function Form(props: {
  action: string
  stacked?: boolean
  fields?: Readonly<Record<string, string>>
  children: Child
}) {
  const { action, stacked, fields = {}, children } = props
  const { makeFormToken, page } = usePerson()
  return (
    <form method="post" action={action} class={stacked ? 'stacked' : undefined}>
      <input type="hidden" name={TOKEN_FIELD} value={makeFormToken()} />
      <input type="hidden" name={PAGE_FIELD} value={page} />
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
    </form>
  )
}

type InputProps = {
  name: string
  /** Needed if several fields of a page have the same name. */
  id?: string
  label: string
  hint?: string | undefined
  value: string | undefined
  problem?: string | undefined
  required?: boolean
}

export function TextInput(props: InputProps & { type?: string; [attribute: string]: unknown }) {
  const { name, id = name, label, hint, value = '', problem, ...more } = props
  return (
    <Field {...{ name, id, label, hint, problem }}>
      {(attributes) => <input {...attributes} autocomplete="off" {...more} value={value} />}
    </Field>
  )
}

export function TextArea(props: InputProps & { rows?: number; maxlength?: number }) {
  const { name, label, hint, value = '', problem, required, rows = 2, maxlength = 500 } = props
  return (
    <Field {...{ name, label, hint, problem }}>
      {(attributes) => (
        <textarea {...attributes} {...{ rows, maxlength, required }}>
          {value}
        </textarea>
      )}
    </Field>
  )
}

export const listOptions = (values: readonly string[]): Option[] =>
  values.map((value) => ({ value, label: value }))

type Option = { value: string; label: string; hint?: string | undefined }

export function Select(props: InputProps & { options: readonly Option[] }) {
  const { name, label, hint, value, problem, required, options } = props
  return (
    <Field {...{ name, label, hint, problem }}>
      {(attributes) => (
        <select {...{ ...attributes, required }}>
          {options.map((one) => (
            <option value={one.value} selected={one.value === value}>
              {one.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** Radio buttons or boxes under one title. If there is a problem, the first has the focus. */
export function Choices(props: {
  name: string
  label: string
  type?: 'radio' | 'checkbox'
  options: readonly (Option & { name?: string; checked?: boolean })[]
  value?: string | undefined
  problem?: string | undefined
}) {
  const { name, label, type = 'radio', options, value, problem } = props
  const problemId = `${name}-problem`
  return (
    <fieldset aria-describedby={problem === undefined ? undefined : problemId}>
      <legend>{label}</legend>
      {options.map((option, at) => (
        <label class="choice">
          <input
            type={type}
            name={option.name ?? name}
            value={option.name === undefined ? option.value : undefined}
            checked={option.checked ?? option.value === value}
            autofocus={problem !== undefined && at === 0}
          />
          <span>
            {option.label}
            {option.hint === undefined ? null : <span class="hint"> {option.hint}</span>}
          </span>
        </label>
      ))}
      {problem === undefined ? null : (
        <span class="problem" id={problemId}>
          {problem}
        </span>
      )}
    </fieldset>
  )
}

type ShownField = Pick<InputProps, 'name' | 'label' | 'hint' | 'value' | 'problem'>

type ActionFormProps = {
  action: string
  submit?: string
  style?: 'danger' | 'quiet'
  fields?: Readonly<Record<string, string>>
  /** The initial values of the visible fields. */
  values?: Readonly<Record<string, string>>
  buttons?: Child
  children?: (field: (name: string, label: string, hint?: string) => ShownField) => Child
}

/** After a refusal, the form of an action shows what was typed, and the evidence that a decision contradicts. */
export function ActionForm(props: ActionFormProps) {
  const { action, submit, style, fields = {}, values = {}, buttons, children } = props
  const { fields: typed, problems, evidence } = useKept(action)
  // The refused form may be another one of the action, which says the opposite.
  const isOwn = Object.entries(fields).every(
    ([name, value]) => name === 'version' || typed[name] === value,
  )
  return (
    <Form action={action} fields={fields} stacked={children !== undefined && style !== 'quiet'}>
      {children?.((name, label, hint) => {
        return { name, label, hint, value: typed[name] ?? values[name], problem: problems[name] }
      })}
      <AgainstEvidence evidence={isOwn ? evidence : []} />
      {buttons ?? (
        <button class={style} type="submit">
          {submit}
        </button>
      )}
    </Form>
  )
}

export function FormCard(props: ActionFormProps & { title: string; id?: string; lead?: Child }) {
  const { title, id, lead, ...form } = props
  return (
    <Card title={title} id={id}>
      {typeof lead === 'string' ? <p>{lead}</p> : lead}
      <ActionForm {...form} />
    </Card>
  )
}

function AgainstEvidence({ evidence }: { evidence: readonly string[] }) {
  if (evidence.length === 0) return null
  return (
    <fieldset>
      <legend>{t('decisions.decide.against')}</legend>
      <List items={evidence.map((one) => <Prose of={say(one)} />)} />
      <label class="choice">
        <input type="checkbox" name="againstEvidence" value="true" autofocus />
        <span>{t('decisions.decide.againstLabel')}</span>
      </label>
    </fieldset>
  )
}
