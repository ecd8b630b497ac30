import type { ReviewNote } from '../../db/schema.ts'
import { Card, Field } from '../../platform/html/components.tsx'
import { Time } from '../cells.tsx'
import type { ConsoleRequest } from '../env.ts'
import { Form } from '../forms/form.tsx'
import { TextArea } from '../forms/text-area.tsx'
import { t } from '../view.ts'
import { type PageState, pickForm } from './page-state.ts'

/** Who takes care of something, and the notes on it, with the forms to change both. */
export function AnnotationCard(props: {
  c: ConsoleRequest
  /** Of the page: the forms go to `…/assignee` and `…/note`. */
  path: string
  review: { assignee: string | null; notes: readonly ReviewNote[] }
  deciders: readonly string[]
  state: PageState
  /** Only notes can be added. */
  isClosed?: boolean
}) {
  const { c, path, review, deciders, state, isClosed = false } = props
  const { assignee, notes } = review
  const note = pickForm({ c, path }, state, 'note')
  const me = c.get('access').name
  return (
    <Card title={t('decisions.review.title')} id="review">
      <p>
        {t('field.assignee')} <strong>{assignee ?? t('decisions.review.unassigned')}</strong>
      </p>
      {isClosed ? null : (
        <div class="row">
          {assignee === me ? null : (
            <Form c={c} action={`${path}/assignee`} fields={{ name: me }}>
              <button class="quiet" type="submit">
                {t('decisions.review.toMe')}
              </button>
            </Form>
          )}
          <Assignment {...{ c, path, assignee, deciders, state }} />
        </div>
      )}
      <h3>{t('decisions.review.notes')}</h3>
      {notes.length === 0 ? <p class="soft">{t('decisions.review.noNotes')}</p> : null}
      <ul>
        {notes.map(({ at, by, text }) => (
          <li>
            {text}{' '}
            <small class="soft">
              {t('decisions.review.noteLine', { name: by })}, <Time iso={at} />
            </small>
          </li>
        ))}
      </ul>
      <Form c={c} action={`${path}/note`} stacked>
        <TextArea
          name="text"
          label={t('decisions.review.note')}
          hint={t('decisions.review.notePlaceholder')}
          value={note.fields.text}
          problem={note.problems.text}
          required
        />
        <button type="submit">{t('decisions.review.add')}</button>
      </Form>
    </Card>
  )
}

function Assignment(props: {
  c: ConsoleRequest
  path: string
  assignee: string | null
  deciders: readonly string[]
  state: PageState
}) {
  const { c, path, assignee, deciders, state } = props
  const { problems } = pickForm({ c, path }, state, 'assignee')
  return (
    <Form c={c} action={`${path}/assignee`}>
      <Field name="name" label={t('decisions.review.assignTo')} problem={problems.name}>
        {(attributes) => (
          <select {...attributes} autofocus={problems.name !== undefined}>
            <option value="">{t('decisions.review.unassigned')}</option>
            {deciders.map((name) => (
              <option value={name} selected={name === assignee}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <button class="quiet" type="submit">
        {t('decisions.review.assign')}
      </button>
    </Form>
  )
}
