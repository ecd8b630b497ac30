import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { ConsoleRequest, FormFields } from '../env.ts'
import { readDraft } from '../forms/draft.ts'

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

/**
 * Returns what a form shows again: what was refused, or what was typed before the person had to sign in again.
 * @param path of the page: the form is sent to `<path>/<form>`
 */
export function pickForm(
  { c, path }: { c: ConsoleRequest; path: string },
  state: PageState,
  form: string,
): FormState {
  if (state.form !== form) return { fields: readDraft(c, `${path}/${form}`), problems: {} }
  return { fields: state.fields ?? {}, problems: state.problems ?? {} }
}
