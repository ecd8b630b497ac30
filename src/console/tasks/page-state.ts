import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { FormFields } from '../env.ts'

/** What a page shows again after a form was not carried out. */
export type PageState = {
  status?: ContentfulStatusCode
  /** Why, and what happened instead: shown above everything else. */
  messages?: readonly string[]
  /** The form that was sent, with its fields and their problems by name. */
  form?: string
  fields?: FormFields
  problems?: Readonly<Record<string, string>>
  /** What the decision contradicts: it can be confirmed. */
  evidence?: readonly string[]
}

/** What one form of the page shows again. */
export type FormState = { fields: FormFields; problems: Readonly<Record<string, string>> }

/** Returns what a form shows again; nothing if another one was sent. */
export function pickForm(state: PageState, form: string): FormState {
  if (state.form !== form) return { fields: {}, problems: {} }
  return { fields: state.fields ?? {}, problems: state.problems ?? {} }
}
