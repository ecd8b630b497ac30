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
import { TEXTS } from '../texts/en.ts'
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
  const { title, caption, columns, add } = TEXTS.people
  const status = Object.keys(problems).length > 0 ? 422 : 200
  return renderConsolePage(
    c,
    { title, current: 'people', status },
    <>
      <Card title={caption}>
        <DataTable
          caption={caption}
          columns={Object.values(columns).map((column) => ({ title: column }))}
          rows={people.map(describePerson)}
        />
      </Card>
      <Card title={add.title}>
        <AddForm c={c} form={form} problems={problems} />
      </Card>
    </>,
  )
}

function describePerson(person: ListedPerson) {
  const { id, name, email, roles, merchants, sessions, lastUsedAt, endedAt } = person
  const { ended, never } = TEXTS.people
  return [
    endedAt === null ? <a href={`${PATH}/${id}`}>{name}</a> : name,
    email ?? '–',
    roles.join(', '),
    describeMerchants(merchants),
    endedAt === null ? String(sessions) : ended,
    lastUsedAt === null ? never : <Time iso={lastUsedAt} />,
  ]
}

function describeMerchants(merchants: readonly string[]): string {
  return merchants.includes(EVERY_MERCHANT) ? TEXTS.account.everyMerchant : merchants.join(', ')
}

/** One person: sessions, a new link, and the end of the access. */
export function renderPerson(
  c: ConsoleRequest,
  { id, name, email, roles, merchants }: Person,
  sessions: readonly ListedSession[],
) {
  const { access, link, end, sessions: title } = TEXTS.people
  const { facts } = TEXTS.account
  const path = `${PATH}/${id}`
  return renderConsolePage(
    c,
    { title: name, current: 'people' },
    <>
      <Card title={access}>
        <Facts
          rows={[
            [facts.email, email ?? '–'],
            [facts.roles, describeRoles(roles)],
            [facts.merchants, describeMerchants(merchants)],
          ]}
        />
      </Card>
      <Card title={link.title}>
        <p>{link.explain}</p>
        <Form c={c} action={`${path}/link`}>
          <button type="submit">{link.button}</button>
        </Form>
      </Card>
      <Card title={title}>
        <SessionTable c={c} sessions={sessions} endPath={(one) => `${path}/sessions/${one}/end`} />
      </Card>
      <Card title={end.title}>
        <p>{end.explain}</p>
        <Form c={c} action={`${path}/end`}>
          <button class="danger" type="submit">
            {end.button}
          </button>
        </Form>
      </Card>
    </>,
  )
}

/** A new link, which is shown only in this response. */
export function renderLink(c: ConsoleRequest, { id, name }: Person, url: string, until: string) {
  const { link } = TEXTS.people
  return renderConsolePage(
    c,
    { title: link.made(name), current: 'people' },
    <Card title={link.title}>
      <p>
        <Identifier>{url}</Identifier>
      </p>
      <p>{link.once}</p>
      <Facts rows={[[link.until, <Time iso={until} />]]} />
      <p>
        <a href={`${PATH}/${id}`}>{link.back}</a>
      </p>
    </Card>,
  )
}
