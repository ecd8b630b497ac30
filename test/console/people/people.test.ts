import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { OTHER, TWO_ACCOUNTS } from '../../support/api.ts'
import { addPrincipal, type TestKey } from '../../support/approvals.ts'
import {
  addTestPerson,
  addVisitor,
  dropProof,
  followBack,
  submitAs,
  visitAs,
} from '../../support/console.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', ...TWO_ACCOUNTS } })

const PATH = '/console/people'
const OWN = MERCHANT.merchantCode

const addAdmin = (merchants = ['*']) => addVisitor(rig.database, { roles: ['admin'], merchants })

const findByName = async (name: string) => {
  const [row] = await rig.database.sql<{ id: string; roles: string[]; merchants: string[] }[]>`
    select id, roles, merchants from actors where name = ${name}`
  return row
}

it('an admin adds a person, makes a link for them, and the link opens a session', async () => {
  const admin = await addAdmin()
  const name = `Hoa ${randomUUID()}`
  const form = {
    name,
    email: '',
    'role-agent': 'on',
    'role-viewer': 'on',
    [`merchant-${OWN}`]: 'on',
  }
  const added = await submitAs(rig, admin, PATH, form)
  const person = await findByName(name)
  expect(person).toMatchObject({ roles: ['viewer', 'agent'], merchants: [OWN] })
  expect(dropProof(added.headers.get('location'))).toBe(`${PATH}/${person?.id}?notice=personAdded`)
  const { headers } = await submitAs(rig, admin, `${PATH}/${person?.id}/link`)
  const shown = headers.get('location') ?? ''
  const made = await (await visitAs(rig, admin, shown)).text()
  const other = await addAdmin()
  expect(await (await visitAs(rig, other, shown)).text()).not.toContain('/console/sign-in/')
  const [link = ''] = /http:\/\/127\.0\.0\.1:\d+\/console\/sign-in\/[\w-]{43}/.exec(made) ?? []
  const opened = await fetch(link, {
    ...{ method: 'POST', redirect: 'manual' },
    headers: { 'sec-fetch-site': 'same-origin' },
  })
  expect(opened.headers.get('set-cookie')).toContain('session=')
  const operations = await rig.database.sql<{ operation: string }[]>`
    select operation from audit_entries where actor = ${admin.name} and object_id = ${person?.id ?? ''} order by id`
  expect(operations.map(({ operation }) => operation)).toEqual([
    `POST ${PATH}`,
    `POST ${PATH}/{personId}/link`,
  ])
})

it.each([
  [{ name: '' }, 'name-problem', 'Write a name'],
  [{ name: 'Demo' }, 'name-problem', 'Write a name'],
  [{ email: 'mai@' }, 'email-problem', 'Write a whole e-mail address'],
  [{ 'role-viewer': undefined }, 'roles-problem', 'Choose at least one role'],
  [{ 'merchant-*': undefined }, 'merchants-problem', 'Choose at least one account'],
])(
  'a form with %j comes back filled in, with the problem beside its field',
  async (change, id, problem) => {
    const admin = await addAdmin()
    const valid = {
      name: 'Hoa & <Mai>',
      email: 'hoa@shop.example',
      'role-viewer': 'on',
      'merchant-*': 'on',
    }
    const fields = Object.entries<string | undefined>({ ...valid, ...change }).flatMap(
      ([name, value]) => (value === undefined ? [] : [[name, value]]),
    )
    const sent = await submitAs(rig, admin, PATH, Object.fromEntries(fields))
    const response = await followBack(rig, admin, sent)
    const page = await response.text()
    expect(page).toMatch(new RegExp(`id="${id}">\\s*${problem}`))
    if (!('name' in change)) expect(page).toContain('value="Hoa &amp; &lt;Mai&gt;"')
    if (!('role-viewer' in change)) expect(page).toMatch(/name="role-viewer" checked/)
    const [focused] = /<[^>]* autofocus[^>]*>/.exec(page) ?? []
    expect(focused).toBeDefined()
    if (id.startsWith('name') || id.startsWith('email')) {
      expect(focused).toContain(`aria-describedby="${id.split('-')[0]}-hint ${id}"`)
      expect(focused).toContain('aria-invalid="true"')
    }
    expect(await findByName(valid.name)).toBeUndefined()
  },
)

it('a name that another person has is refused beside its field', async () => {
  const admin = await addAdmin()
  const { name } = await addTestPerson(rig.database)
  const form = { name: name.toUpperCase(), 'role-viewer': 'on', 'merchant-*': 'on' }
  const response = await followBack(rig, admin, await submitAs(rig, admin, PATH, form))
  expect(await response.text()).toContain('Another person has this name')
})

it('an ended person is out at once, and stays in the list', async () => {
  const admin = await addAdmin()
  const person = await addVisitor(rig.database)
  expect((await visitAs(rig, person, '/console/account')).status).toBe(200)
  const ended = await submitAs(rig, admin, `${PATH}/${person.personId}/end`)
  expect(dropProof(ended.headers.get('location'))).toBe(`${PATH}?notice=personEnded`)
  expect((await visitAs(rig, person, '/console/account')).status).toBe(303)
  const list = await (await visitAs(rig, admin, PATH)).text()
  expect(list).toContain(person.name)
  expect((await submitAs(rig, admin, `${PATH}/${person.personId}/link`)).status).toBe(404)
})

it.each([
  ['every account', ['*'], 2],
  ['one account', [OWN], 1],
])(
  'an admin of %s ends with a person the keys for these accounts, and learns how many',
  async (_, merchants, count) => {
    const admin = await addAdmin(merchants)
    const person = await addVisitor(rig.database, { merchants: [OWN] })
    const { personId, name } = person
    const own = await addPrincipal(rig.database, { person: name.toUpperCase() })
    const wide = await addPrincipal(rig.database, { person: name, merchantCode: '*' })
    await addPrincipal(rig.database, { person: `${name} and another` })
    const { sql } = rig.database
    await sql`
      insert into webhook_endpoints (merchant_code, url, types, secret, key_chain_id, cursor, api_version)
      values (${OWN}, 'https://shop.example/hook', '{payment.updated}', '', ${own.id}, 0, '')`
    const isLive = async ({ id }: TestKey) => {
      const [row] = await sql<{ isLive: boolean }[]>`
        select ended_at is null as "isLive" from actors where id = ${id}`
      return row?.isLive
    }
    const { headers } = await submitAs(rig, admin, `${PATH}/${personId}/end`)
    const list = await (await visitAs(rig, admin, headers.get('location') ?? '')).text()
    expect(list).toContain(`The access is ended. API keys that ended with it: ${count}.`)
    expect([await isLive(own), await isLive(wide)]).toEqual([false, count === 1])
    const [endpoint] = await sql`
      select disabled_reason as why from webhook_endpoints where key_chain_id = ${own.id}`
    expect(endpoint).toEqual({ why: 'key_ended' })
    const entries = await sql`
      select operation, merchant_code as "merchantCode" from audit_entries
      where actor = ${admin.name} and object_id in (${own.id}, ${wide.id})`
    expect(entries).toHaveLength(count)
    const operation = `POST ${PATH}/{personId}/end`
    expect(entries).toContainEqual({ operation, merchantCode: OWN })
    // By now the name may be somebody else's.
    const later = await addPrincipal(rig.database, { person: name })
    await submitAs(rig, admin, `${PATH}/${personId}/end`)
    expect(await isLive(later)).toBe(true)
  },
)

it('an admin ends a session of a person, only under that person', async () => {
  const admin = await addAdmin()
  const [person, other] = [await addVisitor(rig.database), await addVisitor(rig.database)]
  const page = await (await visitAs(rig, admin, `${PATH}/${person.personId}`)).text()
  const [path = ''] = /\/console\/people\/[0-9a-f-]+\/sessions\/[0-9a-f-]+\/end/.exec(page) ?? []
  const wrong = path.replace(person.personId, other.personId)
  expect((await submitAs(rig, admin, wrong)).status).toBe(404)
  expect((await visitAs(rig, person, '/console/account')).status).toBe(200)
  expect((await submitAs(rig, admin, path)).status).toBe(303)
  expect((await visitAs(rig, person, '/console/account')).status).toBe(303)
})

it.each([
  ['a session', ['The session is ended.', 'The session is ended.']],
  [
    'the access of a person',
    ['The access is ended. API keys that ended with it: 1.', 'The access is ended.'],
  ],
])('a double click that ends %s is told what the first one did', async (what, said) => {
  const admin = await addAdmin()
  const { personId, name } = await addVisitor(rig.database, { roles: ['agent'] })
  await addPrincipal(rig.database, { person: name })
  const [session] = await rig.database.sql<{ id: string }[]>`
    select id from sessions where person_id = ${personId}`
  const action = what === 'a session' ? `sessions/${session?.id}/end` : 'end'
  const click = () => submitAs(rig, admin, `${PATH}/${personId}/${action}`)
  const clicks = [await click(), await click()]
  expect(clicks.map(({ status }) => status)).toEqual([303, 303])
  const to = clicks.map(({ headers }) => headers.get('location') ?? '')
  const [one, two] = to.map((path) => dropProof(path)?.split('?')[0])
  expect(two).toBe(one)
  const pages = to.map(async (path) => await (await visitAs(rig, admin, path)).text())
  const notices = (await Promise.all(pages)).map((page) =>
    /The (session|access) is ended\.[^<]*/.exec(page)?.[0].trim(),
  )
  expect(notices).toEqual(said)
})

describe('an admin of one account', () => {
  it('sees and manages only people who have no other', async () => {
    const admin = await addAdmin([OWN])
    const own = await addTestPerson(rig.database, { merchants: [OWN] })
    const list = await (await visitAs(rig, admin, PATH)).text()
    expect(list).toContain(own.personId)
    for (const merchants of [[OTHER.merchantCode], [OWN, OTHER.merchantCode], ['*']]) {
      const wider = await addVisitor(rig.database, { merchants })
      expect(list).not.toContain(wider.personId)
      for (const action of ['link', 'end']) {
        const refused = await submitAs(rig, admin, `${PATH}/${wider.personId}/${action}`)
        expect(refused.status).toBe(404)
      }
      expect((await visitAs(rig, admin, `${PATH}/${wider.personId}`)).status).toBe(404)
      expect((await visitAs(rig, wider, '/console/account')).status).toBe(200)
    }
  })

  it('gives nobody an account that is not their own', async () => {
    const admin = await addAdmin([OWN])
    for (const code of ['*', OTHER.merchantCode]) {
      const name = `Wider ${randomUUID()}`
      const form = { name, 'role-admin': 'on', [`merchant-${code}`]: 'on' }
      await followBack(rig, admin, await submitAs(rig, admin, PATH, form))
      expect(await findByName(name)).toBeUndefined()
      const both = { ...form, [`merchant-${OWN}`]: 'on' }
      const { headers } = await submitAs(rig, admin, PATH, both)
      expect(headers.get('location')).toContain('notice=personAdded')
      expect((await findByName(name))?.merchants).toEqual([OWN])
    }
  })
})
