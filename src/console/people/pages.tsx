import { EVERY_MERCHANT } from '../../access/keys.ts'
import type { ListedPerson, Person } from '../../access/people.ts'
import type { ListedSession } from '../../access/sessions.ts'
import { Card, DataTable, Facts, Identifier } from '../../platform/html/components.tsx'
import { Time } from '../cells.tsx'
import type { ConsoleRequest, FormFields } from '../env.ts'
import { Form } from '../forms/form.tsx'
import { renderConsolePage } from '../layout.tsx'
import { describeRoles } from '../person-facts.tsx'
import { SessionTable } from '../session-table.tsx'
import { listTexts, t } from '../view.ts'
import { AddForm } from './add-form.tsx'
import type { PersonProblems } from './read-person.ts'

const PATH = '/console/people'

/** All people of the admin's accounts, and the form that adds one; filled in, and with its problems if there are any. */
export function renderPeople(
  c: ConsoleRequest,
  people: readonly ListedPerson[],
  form: FormFields,
  problems: PersonProblems,
) {
  const status = Object.keys(problems).length > 0 ? 422 : 200
  return renderConsolePage(
    c,
    { title: t('frame.pages.people'), current: 'people', status },
    <>
      <Card title={t('people.caption')}>
        <DataTable
          caption={t('people.caption')}
          columns={listTexts('people.columns').map(([, title]) => ({ title }))}
          rows={people.map(describePerson)}
        />
      </Card>
      <Card title={t('people.add.title')}>
        <AddForm c={c} form={form} problems={problems} />
      </Card>
    </>,
  )
}

function describePerson(person: ListedPerson) {
  const { id, name, email, roles, merchants, sessions, lastUsedAt, endedAt } = person
  return [
    endedAt === null ? <a href={`${PATH}/${id}`}>{name}</a> : name,
    email ?? '–',
    roles.join(', '),
    describeMerchants(merchants),
    endedAt === null ? String(sessions) : t('people.ended'),
    lastUsedAt === null ? t('people.never') : <Time iso={lastUsedAt} />,
  ]
}

function describeMerchants(merchants: readonly string[]): string {
  return merchants.includes(EVERY_MERCHANT) ? t('account.everyMerchant') : merchants.join(', ')
}

/** One person: sessions, a new link, and the end of the access. */
export function renderPerson(
  c: ConsoleRequest,
  { id, name, email, roles, merchants }: Person,
  sessions: readonly ListedSession[],
) {
  const path = `${PATH}/${id}`
  return renderConsolePage(
    c,
    { title: name, current: 'people' },
    <>
      <Card title={t('people.access')}>
        <Facts
          rows={[
            [t('field.email'), email ?? '–'],
            [t('field.roles'), describeRoles(roles)],
            [t('field.merchants'), describeMerchants(merchants)],
          ]}
        />
      </Card>
      <Card title={t('people.link.title')}>
        <p>{t('people.link.explain')}</p>
        <Form c={c} action={`${path}/link`}>
          <button type="submit">{t('people.link.button')}</button>
        </Form>
      </Card>
      <Card title={t('field.sessions')}>
        <SessionTable c={c} sessions={sessions} endPath={(one) => `${path}/sessions/${one}/end`} />
      </Card>
      <Card title={t('people.end.title')}>
        <p>{t('people.end.explain')}</p>
        <Form c={c} action={`${path}/end`}>
          <button class="danger" type="submit">
            {t('people.end.title')}
          </button>
        </Form>
      </Card>
    </>,
  )
}

/** A new link, which is shown only in this response. */
export function renderLink(c: ConsoleRequest, { id, name }: Person, url: string, until: string) {
  return renderConsolePage(
    c,
    { title: t('people.link.made', { name }), current: 'people' },
    <Card title={t('people.link.title')}>
      <p>
        <Identifier>{url}</Identifier>
      </p>
      <p>{t('people.link.once')}</p>
      <Facts rows={[[t('field.validUntil'), <Time iso={until} />]]} />
      <p>
        <a href={`${PATH}/${id}`}>{t('people.link.back')}</a>
      </p>
    </Card>,
  )
}
