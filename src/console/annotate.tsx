import { z } from 'zod'
import { listDeciders } from '../access/principal.ts'
import type { ReviewNote } from '../db/schema.ts'
import type { Annotation } from '../decisions/discrepancies.ts'
import { Card } from '../platform/html/components.tsx'
import { List, Prose, Time } from './cells.tsx'
import { ActionForm, listOptions, Select, TextArea } from './forms.tsx'
import { type Action, type Asked, InvalidFieldsError, parseFields, requireText } from './page.ts'
import { t, usePerson } from './view.ts'

const NoteFields = z.object({ text: requireText('decisions.problems.text') })

export function annotations<Subject>(of: {
  merchantOf(subject: Subject): string
  annotate(asked: Asked<Subject>, given: Annotation): Promise<unknown>
}): { note: Action<Subject>; assignee: Action<Subject> } {
  return {
    note: {
      scope: 'ops',
      async run(asked) {
        await of.annotate(asked, { note: parseFields(NoteFields, asked.fields).text })
        return { notice: 'noteAdded' }
      },
    },
    assignee: {
      scope: 'ops',
      async run(asked) {
        const { ctx, access, fields } = asked
        const { name = '' } = fields
        const deciders = await listDeciders(ctx.db.sql, of.merchantOf(asked.of))
        if (!['', access.name, ...deciders].includes(name)) {
          throw new InvalidFieldsError({ name: t('decisions.problems.name') })
        }
        await of.annotate(asked, { assignee: name === '' ? null : name })
        return { notice: 'assigned' }
      },
    },
  }
}

export function Annotations(props: {
  path: string
  review: { assignee: string | null; notes: readonly ReviewNote[] }
  deciders: readonly string[]
  isClosed?: boolean
}) {
  const { path, review, deciders, isClosed = false } = props
  const { assignee, notes } = review
  const { name: me } = usePerson()
  const unassigned = t('decisions.review.unassigned')
  const people = [{ value: '', label: unassigned }, ...listOptions(deciders)]
  const assign = { action: `${path}/assignee`, style: 'quiet' as const }
  return (
    <Card title={t('decisions.review.title')} id="review">
      <p>
        {t('field.assignee')} <strong>{assignee ?? unassigned}</strong>
      </p>
      {isClosed ? null : (
        <div class="row">
          {assignee === me ? null : (
            <ActionForm {...assign} fields={{ name: me }} submit={t('decisions.review.toMe')} />
          )}
          <ActionForm
            {...{ ...assign, submit: t('decisions.review.assign') }}
            values={{ name: assignee ?? '' }}
          >
            {(field) => (
              <Select {...field('name', t('decisions.review.assignTo'))} options={people} />
            )}
          </ActionForm>
        </div>
      )}
      <h3>{t('decisions.review.notes')}</h3>
      {notes.length === 0 ? <p class="soft">{t('decisions.review.noNotes')}</p> : null}
      <List
        items={notes.map(({ at, by, text }) => (
          <>
            <Prose of={text} />{' '}
            <small class="soft">
              {t('decisions.review.noteLine', { name: by })}, <Time iso={at} />
            </small>
          </>
        ))}
      />
      <ActionForm action={`${path}/note`} submit={t('decisions.review.add')}>
        {(field) => (
          <TextArea
            {...field('text', t('decisions.review.note'), t('decisions.review.notePlaceholder'))}
            required
          />
        )}
      </ActionForm>
    </Card>
  )
}
