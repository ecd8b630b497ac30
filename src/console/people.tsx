import { z } from 'zod'
import { nameOperation, recordEntry, recordWrite } from '../access/audit.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import {
  addPerson,
  endPerson,
  findPerson,
  type ListedPerson,
  listPeople,
  type Person,
  PersonEmail,
  PersonName,
} from '../access/people.ts'
import {
  createSignInLink,
  formatSignInUrl,
  type ListedSession,
  listSessions,
} from '../access/sessions.ts'
import { type Access, ROLES } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { isUuid } from '../http/fields.ts'
import { Card, Identifier } from '../platform/html/components.tsx'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { endEndpoints } from '../webhooks/endpoints.ts'
import { changePerson, endOne, nameMerchant, PersonFacts, Sessions } from './account.tsx'
import { cell, FieldFacts, type ListColumn, TableCard, Time, text, time } from './cells.tsx'
import type { ConsoleRequest, FormFields } from './env.ts'
import { Choices, FormCard, TextInput } from './forms.tsx'
import { open, seal } from './kept.ts'
import { definePage, InvalidFieldsError } from './page.ts'
import { nameIn, t, useKept, usePerson } from './view.ts'

const PATH = '/console/people'

const pathOf = ({ id }: Pick<Person, 'id'>) => `${PATH}/${id}`

const roleField = (role: string) => `role-${role}`
const merchantField = (merchantCode: string) => `merchant-${merchantCode}`

function listGrantable({ coversAll, merchants }: Access): readonly string[] {
  return coversAll ? [EVERY_MERCHANT, ...merchants] : merchants
}

const PEOPLE: readonly ListColumn<ListedPerson>[] = [
  cell('name', (person) =>
    person.endedAt === null ? <a href={pathOf(person)}>{person.name}</a> : person.name,
  ),
  text('email', ({ email }) => email ?? '–'),
  text('roles', ({ roles }) => roles.join(', ')),
  text('merchants', ({ merchants }) => merchants.map(nameMerchant).join(', ')),
  text('sessions', ({ endedAt, sessions }) =>
    endedAt === null ? String(sessions) : t('people.ended'),
  ),
  time('lastSeen', ({ lastUsedAt }) => lastUsedAt, 'people.never'),
]

/** The page for admins. An admin sees the people who have no accounts but those of the admin. */
export const peoplePage = definePage({
  path: PATH,
  role: 'admin',
  load: (ctx, c) => listPeople(ctx.db.sql, c.get('access')),
  async show(_, c, people) {
    return {
      title: t('frame.pages.people'),
      current: 'people',
      body: (
        <>
          <TableCard {...{ title: t('people.caption'), columns: PEOPLE, rows: people }} />
          <AddForm access={c.get('access')} />
        </>
      ),
    }
  },
  actions: {
    '': {
      async run({ ctx, c, access, fields }) {
        const person = readPerson(fields, access)
        const added = await runInTransaction(ctx.db.sql, async (tx) => {
          const result = await addPerson(tx, person)
          if (result.kind === 'taken') {
            const problem = t(`people.add.problems.${result.by}Taken`)
            throw new InvalidFieldsError({ [result.by]: problem })
          }
          const write = { operation: nameOperation(c), merchantCode: null, objectId: result.id }
          await recordWrite(tx, ctx.log, access, write)
          return result
        })
        return { to: pathOf(added), notice: 'personAdded' }
      },
    },
  },
})

const NewPerson = z.object({
  name: PersonName,
  email: z.union([z.literal(''), PersonEmail]),
  roles: z.array(z.enum(ROLES)).min(1),
  merchants: z.array(z.string()).min(1),
})

/** Reads the form of a new person, but only accounts that the admin can give. */
function readPerson(fields: FormFields, access: Access) {
  const { data, error } = NewPerson.safeParse({
    name: fields.name ?? '',
    email: fields.email?.trim() ?? '',
    roles: ROLES.filter((role) => roleField(role) in fields),
    merchants: listGrantable(access).filter((code) => merchantField(code) in fields),
  })
  if (data) return { ...data, email: data.email || null }
  const wrong = error.issues.map(({ path }) => String(path[0]))
  const problems = wrong.map((name) => [name, nameIn('people.add.problems', name)])
  throw new InvalidFieldsError(Object.fromEntries(problems))
}

function AddForm({ access }: { access: Access }) {
  const typed = useKept(PATH).fields
  const tick = (name: string, label: string) => ({ name, label, value: '', checked: name in typed })
  const roles = ROLES.map((role) => tick(roleField(role), t(`account.roles.${role}`)))
  const accounts = listGrantable(access).map((one) => tick(merchantField(one), nameMerchant(one)))
  return (
    <FormCard {...{ title: t('people.add.title'), action: PATH, submit: t('people.add.button') }}>
      {(field) => (
        <>
          <TextInput
            {...field('name', t('field.name'), t('people.add.nameHint'))}
            maxlength={140}
          />
          <TextInput
            {...field('email', t('field.email'), t('people.add.emailHint'))}
            {...{ type: 'email', maxlength: 254 }}
          />
          <Choices {...field('roles', t('field.roles'))} type="checkbox" options={roles} />
          <Choices
            {...field('merchants', t('field.merchants'))}
            type="checkbox"
            options={accounts}
          />
        </>
      )}
    </FormCard>
  )
}

/** The page shows the link for an hour to who made it. */
const MadeLink = z.strictObject({ url: z.string(), until: z.string() })

export const personPage = definePage({
  path: `${PATH}/:personId`,
  role: 'admin',
  load: (ctx, c) => findPathPerson(ctx.db.sql, c),
  async show(ctx, c, person) {
    const path = pathOf(person)
    const owner = { personId: usePerson().id, path }
    const made = open(ctx, owner, c.req.query('made') ?? '', MadeLink)
    const sessions = await listSessions(ctx.db.sql, person.id)
    const { coversAll } = c.get('access')
    const body = <PersonBody {...{ person, path, sessions, made, coversAll }} />
    return { title: person.name, current: 'people', body }
  },
  actions: {
    link: {
      async run({ ctx, c, of }) {
        const change = { personId: of.id }
        const made = await changePerson(ctx, c, change, (tx) => createSignInLink(tx, of.id))
        const baseUrl = ctx.config.CONSOLE_BASE_URL ?? new URL(c.req.url).origin
        const content = { url: formatSignInUrl(baseUrl, made), until: made.expiresAt }
        const path = pathOf(of)
        return { to: `${path}?made=${seal(ctx, { personId: usePerson().id, path }, content)}` }
      },
    },
    'sessions/:sessionId/end': {
      async run({ ctx, c, of: { id: personId } }) {
        const sessionId = c.req.param('sessionId') ?? ''
        await changePerson(ctx, c, { personId }, (tx) => endOne(tx, personId, sessionId))
        return { notice: 'sessionEnded' }
      },
    },
    end: {
      // After a double click, the second request is told that the access has ended.
      load: (ctx, c) => findPathPerson(ctx.db.sql, c, true),
      async run({ ctx, c, access, of: { id: personId } }) {
        const keys = await changePerson(ctx, c, { personId }, async (tx) => {
          const endedNow = await endPerson(tx, personId, access)
          const ended = endedNow ?? []
          for (const { id: objectId, merchantCode } of ended) {
            const write = { operation: nameOperation(c), merchantCode, objectId }
            await recordEntry(tx, ctx.log, access, write)
          }
          await endEndpoints(tx, [personId, ...ended.map(({ id }) => id)])
          return endedNow
        })
        // The request that ended the access has told how many keys ended with it.
        if (!keys) return { to: PATH, notice: 'personEndedBefore' }
        return { to: PATH, notice: 'personEnded', count: keys.length }
      },
    },
  },
})

function PersonBody(props: {
  person: Person
  path: string
  sessions: readonly ListedSession[]
  made: z.infer<typeof MadeLink> | undefined
  coversAll: boolean
}) {
  const { person, path, sessions, made, coversAll } = props
  return (
    <>
      {made && (
        <Card title={t('people.link.made', { name: person.name })}>
          <p>
            <Identifier>{made.url}</Identifier>
          </p>
          <FieldFacts of={{ validUntil: <Time iso={made.until} /> }} />
        </Card>
      )}
      <Card title={t('people.access')}>
        <PersonFacts {...person} />
      </Card>
      <FormCard
        {...{ title: t('people.link.title'), lead: t('people.link.explain') }}
        {...{ action: `${path}/link`, submit: t('people.link.button') }}
      />
      <Card title={t('field.sessions')}>
        <Sessions of={sessions} path={path} />
      </Card>
      <FormCard
        {...{ title: t('people.end.title') }}
        lead={t(coversAll ? 'people.end.explain' : 'people.end.explainOwn')}
        {...{ action: `${path}/end`, submit: t('people.end.title'), style: 'danger' }}
      />
    </>
  )
}

/** @throws DomainError `not_found`, also for a person who has accounts that the admin does not have */
async function findPathPerson(
  tx: Sql | Tx,
  c: ConsoleRequest,
  mayHaveEnded = false,
): Promise<Person> {
  const id = c.req.param('personId') ?? ''
  const person = isUuid(id) ? await findPerson(tx, id, c.get('access'), mayHaveEnded) : undefined
  if (!person) throw new DomainError('not_found', 'There is no such person')
  return person
}
