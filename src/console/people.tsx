import { z } from 'zod'
import { recordWrite } from '../access/audit.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import {
  addPerson,
  changeReading,
  endPerson,
  findPerson,
  LANGUAGES,
  type ListedPerson,
  listPeople,
  type Person,
  PersonEmail,
  PersonName,
  TimeZone,
} from '../access/people.ts'
import { endSession, type ListedSession, listSessions } from '../access/sessions.ts'
import { createSignInLink, formatSignInUrl } from '../access/sign-in.ts'
import { type Access, ROLES } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { isUuid } from '../http/fields.ts'
import { Badge, Card, Facts, Identifier } from '../platform/html/components.tsx'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endEndpoints } from '../webhooks/owner.ts'
import { cell, type ListColumn, Rows, Time, text, time } from './cells.tsx'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest, FormFields } from './env.ts'
import { Choices, Form, Select, TextInput } from './forms.tsx'
import { open, seal } from './kept.ts'
import { definePage, InvalidFieldsError, nameOperation } from './page.ts'
import { nameIn, t, useKept, usePerson, useView } from './view.ts'

const PATH = '/console/people'

const pathOf = ({ id }: Pick<Person, 'id'>) => `${PATH}/${id}`

/** The names of the fields of a choice. */
const roleField = (role: string) => `role-${role}`
const merchantField = (merchantCode: string) => `merchant-${merchantCode}`

/** The accounts that an admin can give to others: their own, and all of them only with all of them. */
function listGrantable({ coversAll, merchants }: Access): readonly string[] {
  return coversAll ? [EVERY_MERCHANT, ...merchants] : merchants
}

const nameMerchant = (code: string) => (code === EVERY_MERCHANT ? t('account.everyMerchant') : code)

const PEOPLE: readonly ListColumn<ListedPerson>[] = [
  cell(
    'name',
    ({ name }) => name,
    (person) =>
      person.endedAt === null ? <a href={pathOf(person)}>{person.name}</a> : person.name,
  ),
  text('email', ({ email }) => email ?? '–'),
  text('roles', ({ roles }) => roles.join(', ')),
  text('merchants', ({ merchants }) => merchants.map(nameMerchant).join(', ')),
  text('sessions', ({ endedAt, sessions }) =>
    endedAt === null ? String(sessions) : t('people.ended'),
  ),
  cell(
    'lastSeen',
    ({ lastUsedAt }) => lastUsedAt,
    ({ lastUsedAt }) => (lastUsedAt === null ? t('people.never') : <Time iso={lastUsedAt} />),
  ),
]

/** The admins' page: who may use the console, and the form that adds one. An admin sees those whose accounts they have all. */
export const peoplePage = definePage({
  path: PATH,
  role: 'admin',
  load: (ctx, c) => listPeople(ctx.sql, c.get('access')),
  async show(_, c, people) {
    const title = t('people.caption')
    return {
      title: t('frame.pages.people'),
      current: 'people',
      body: (
        <>
          <Card title={title}>
            <Rows caption={title} columns={PEOPLE} rows={people} />
          </Card>
          <Card title={t('people.add.title')}>
            <AddForm access={c.get('access')} />
          </Card>
        </>
      ),
    }
  },
  actions: {
    '': {
      async run({ ctx, c, access, fields }) {
        const person = readPerson(fields, access)
        const added = await runInTransaction(ctx.sql, async (tx) => {
          const result = await addPerson(tx, person)
          if (result.kind === 'taken') {
            const isName = result.by === 'name'
            const problem = t(
              isName ? 'people.add.problems.nameTaken' : 'people.add.problems.emailTaken',
            )
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

/** Reads the form of a new person. Accounts that the admin cannot give are none of its fields. */
function readPerson(fields: FormFields, access: Access) {
  const name = PersonName.safeParse(fields.name ?? '')
  const typed = fields.email?.trim() ?? ''
  const email = z.union([z.literal(''), PersonEmail]).safeParse(typed)
  const roles = ROLES.filter((role) => roleField(role) in fields)
  const merchants = listGrantable(access).filter((code) => merchantField(code) in fields)
  if (name.success && email.success && roles.length > 0 && merchants.length > 0) {
    return { name: name.data, email: email.data || null, roles, merchants }
  }
  throw new InvalidFieldsError({
    ...(name.success ? {} : { name: t('people.add.problems.name') }),
    ...(email.success ? {} : { email: t('people.add.problems.email') }),
    ...(roles.length > 0 ? {} : { roles: t('people.add.problems.roles') }),
    ...(merchants.length > 0 ? {} : { merchants: t('people.add.problems.merchants') }),
  })
}

function AddForm({ access }: { access: Access }) {
  const { fields, problems } = useKept(PATH)
  const tick = (name: string, label: string) => ({
    ...{ name, label, value: '' },
    checked: name in fields,
  })
  return (
    <Form action={PATH} stacked>
      <TextInput
        {...{ name: 'name', label: t('field.name'), hint: t('people.add.nameHint') }}
        {...{ value: fields.name, problem: problems.name, maxlength: 140 }}
      />
      <TextInput
        {...{ name: 'email', type: 'email', label: t('field.email') }}
        {...{ hint: t('people.add.emailHint'), value: fields.email, maxlength: 254 }}
        problem={problems.email}
      />
      <Choices
        {...{ type: 'checkbox', name: 'roles', label: t('field.roles'), problem: problems.roles }}
        options={ROLES.map((role) => tick(roleField(role), t(`account.roles.${role}`)))}
      />
      <Choices
        {...{ type: 'checkbox', name: 'merchants', label: t('field.merchants') }}
        problem={problems.merchants}
        options={listGrantable(access).map((code) => tick(merchantField(code), nameMerchant(code)))}
      />
      <button type="submit">{t('people.add.button')}</button>
    </Form>
  )
}

/** A link that was made, as its page shows it for an hour to who made it. */
const MadeLink = z.strictObject({ url: z.string(), until: z.string() })

/** One person: sessions, a new link, and the end of the access. */
export const personPage = definePage({
  path: `${PATH}/:personId`,
  role: 'admin',
  load: (ctx, c) => findPathPerson(ctx.sql, c),
  async show(ctx, c, person) {
    const path = pathOf(person)
    const owner = { personId: usePerson().id, path }
    const made = open(ctx, owner, c.req.query('made') ?? '', MadeLink)
    return {
      title: person.name,
      current: 'people',
      body: (
        <>
          {made ? <Made name={person.name} link={made} /> : null}
          <Card title={t('people.access')}>
            <PersonFacts {...person} />
          </Card>
          <Card title={t('people.link.title')}>
            <p>{t('people.link.explain')}</p>
            <Form action={`${path}/link`}>
              <button type="submit">{t('people.link.button')}</button>
            </Form>
          </Card>
          <Card title={t('field.sessions')}>
            <Sessions of={await listSessions(ctx.sql, person.id)} path={path} />
          </Card>
          <Card title={t('people.end.title')}>
            <p>{t('people.end.explain')}</p>
            <Form action={`${path}/end`}>
              <button class="danger" type="submit">
                {t('people.end.title')}
              </button>
            </Form>
          </Card>
        </>
      ),
    }
  },
  actions: {
    link: {
      async run({ ctx, c }) {
        const path = c.req.path.replace(/\/link$/, '')
        const made = await change(ctx, c, (tx, { id }) => createSignInLink(tx, id))
        const baseUrl = ctx.config.CONSOLE_BASE_URL ?? new URL(c.req.url).origin
        const content = { url: formatSignInUrl(baseUrl, made), until: made.expiresAt }
        return { to: `${path}?made=${seal(ctx, { personId: usePerson().id, path }, content)}` }
      },
    },
    'sessions/:sessionId/end': {
      async run({ ctx, c }) {
        await change(ctx, c, (tx, { id }) => endOne(tx, id, c.req.param('sessionId') ?? ''))
        return { notice: 'sessionEnded' }
      },
    },
    end: {
      async run({ ctx, c }) {
        await change(ctx, c, async (tx, { id }) => {
          await endPerson(tx, id)
          await endEndpoints(tx, id)
        })
        return { to: PATH, notice: 'personEnded' }
      },
    },
  },
})

/** Changes a person whom the admin manages, and records it. */
async function change<T>(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  write: (tx: Tx, person: Person) => Promise<T>,
): Promise<T> {
  return await runInTransaction(ctx.sql, async (tx) => {
    const person = await findPathPerson(tx, c)
    const entry = { operation: nameOperation(c), merchantCode: null, objectId: person.id }
    // Before the write, which may end the admin's own access.
    await recordWrite(tx, ctx.log, c.get('access'), entry)
    return await write(tx, person)
  })
}

/** @throws DomainError `not_found`, also for a person with accounts that the admin does not have */
async function findPathPerson(tx: Tx | ConsoleContext['sql'], c: ConsoleRequest): Promise<Person> {
  const id = c.req.param('personId') ?? ''
  const person = isUuid(id) ? await findPerson(tx, id, c.get('access')) : undefined
  if (!person) throw new DomainError('not_found', 'There is no such person')
  return person
}

async function endOne(tx: Tx, personId: string, sessionId: string): Promise<void> {
  const isEnded = isUuid(sessionId) && (await endSession(tx, personId, sessionId))
  if (!isEnded) throw new DomainError('not_found', 'There is no such session')
}

function Made({ name, link: { url, until } }: { name: string; link: z.infer<typeof MadeLink> }) {
  return (
    <Card title={t('people.link.made', { name })}>
      <p>
        <Identifier>{url}</Identifier>
      </p>
      <Facts rows={[[t('field.validUntil'), <Time iso={until} />]]} />
    </Card>
  )
}

function PersonFacts(props: {
  email?: string | null
  roles: readonly string[]
  merchants: readonly string[]
}) {
  const { email, roles, merchants } = props
  const own = ROLES.filter((role) => roles.includes(role))
  return (
    <Facts
      rows={[
        ...(email ? [[t('field.email'), email] as const] : []),
        [t('field.roles'), own.map((role) => <div>{t(`account.roles.${role}`)}</div>)],
        [t('field.merchants'), merchants.map(nameMerchant).join(', ')],
      ]}
    />
  )
}

/** The live sessions of a person, each with a button that ends it. */
function Sessions({ of, path }: { of: readonly ListedSession[]; path: string }) {
  const { sessionId } = usePerson()
  const columns: readonly ListColumn<ListedSession>[] = [
    cell(
      'browser',
      ({ userAgent }) => userAgent,
      ({ id, userAgent }) => (
        <>
          {userAgent}{' '}
          {id === sessionId ? <Badge tone="good">{t('account.sessions.thisBrowser')}</Badge> : null}
        </>
      ),
    ),
    text('address', ({ address }) => address),
    time('signedIn', ({ signedInAt }) => signedInAt),
    time('lastUsed', ({ lastUsedAt }) => lastUsedAt),
    time('ends', ({ expiresAt }) => expiresAt),
    cell(
      'actions',
      () => null,
      ({ id }) => (
        <Form action={`${path}/sessions/${id}/end`}>
          <button class="quiet" type="submit">
            {t('account.sessions.end')}
          </button>
        </Form>
      ),
    ),
  ]
  const caption = t('field.sessions')
  return <Rows {...{ caption, columns, rows: of, empty: t('account.sessions.none') }} />
}

const ACCOUNT = '/console/account'

/** A person's own page: who they are here, how they read, and their sessions. */
export const accountPage = definePage({
  path: ACCOUNT,
  load: (ctx) => listSessions(ctx.sql, usePerson().id),
  async show(_, c, sessions) {
    const { name, roles } = usePerson()
    const { coversAll, merchants } = c.get('access')
    return {
      title: t('frame.pages.account'),
      current: 'account',
      body: (
        <>
          <Card title={name}>
            <PersonFacts roles={roles} merchants={coversAll ? [EVERY_MERCHANT] : merchants} />
          </Card>
          <Card title={t('account.reading.title')}>
            <Reading />
          </Card>
          <Card title={t('account.sessions.title')}>
            <p>{t('account.sessions.explain')}</p>
            <Sessions of={sessions} path={ACCOUNT} />
          </Card>
        </>
      ),
    }
  },
  actions: {
    reading: {
      async run({ ctx, c, access, fields }) {
        const language = LANGUAGES.find((one) => one === fields.language)
        const timeZone = TimeZone.safeParse(fields.timeZone?.trim())
        if (!language || !timeZone.success) {
          throw new InvalidFieldsError({ timeZone: t('account.reading.problem') })
        }
        const { id } = usePerson()
        await runInTransaction(ctx.sql, async (tx) => {
          const write = { operation: nameOperation(c), merchantCode: null, objectId: id }
          await recordWrite(tx, ctx.log, access, write)
          await changeReading(tx, id, { language, timeZone: timeZone.data })
        })
        return { notice: 'saved' }
      },
    },
    'sessions/:sessionId/end': {
      async run({ ctx, c }) {
        await endOwn(ctx, c, c.req.param('sessionId') ?? '')
        return { notice: 'sessionEnded' }
      },
    },
  },
})

/** The language and the zone of a person. */
function Reading() {
  const action = `${ACCOUNT}/reading`
  const { fields, problems } = useKept(action)
  const { language, zone } = useView()
  return (
    <Form action={action} stacked>
      <Select
        {...{ name: 'language', label: t('account.reading.language') }}
        value={fields.language ?? language}
        options={LANGUAGES.map((value) => ({ value, label: nameIn('account.languages', value) }))}
      />
      <TextInput
        {...{ name: 'timeZone', label: t('account.reading.zone'), problem: problems.timeZone }}
        hint={t('account.reading.zoneHint')}
        value={fields.timeZone ?? zone}
      />
      <button type="submit">{t('account.reading.save')}</button>
    </Form>
  )
}

/** Ends a session of the person who asks, and records it. */
export async function endOwn(ctx: ConsoleContext, c: ConsoleRequest, sessionId: string) {
  await runInTransaction(ctx.sql, async (tx) => {
    const write = { operation: nameOperation(c), merchantCode: null, objectId: sessionId }
    await recordWrite(tx, ctx.log, c.get('access'), write)
    await endOne(tx, usePerson().id, sessionId)
  })
}
