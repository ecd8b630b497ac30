import { randomBytes } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { hashKey } from '../../../src/access/keys.ts'
import { PAGE_FIELD } from '../../../src/console/session.ts'
import { addVisitor, makeLink, submitAs, type Visitor, visitAs } from '../../support/console.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const PEOPLE = '/console/people'
const TYPED = { name: 'Lê Thị <b>Hoa</b>', email: 'not an address', 'role-agent': 'on' }

const ADMIN = { roles: ['admin' as const] }

const age = ({ token }: Pick<Visitor, 'token'>, column: string, minutes: number) => rig.database
  .sql`
  update sessions set ${rig.database.sql(column)} = now() - ${minutes} * interval '1 minute'
  where token_hash = ${hashKey(token)}`

/** The value of a cookie that a response sets. */
function readCookie(response: Response, name: string): string | undefined {
  const found = response.headers.getSetCookie().find((one) => one.startsWith(`${name}=`))
  return found?.split(';')[0]?.slice(name.length + 1)
}

/** Opens a session with a new link, in a browser that has these cookies. */
async function signInAgain(personId: string, cookie: string) {
  const link = await makeLink(rig.database, personId)
  const opened = await fetch(`${rig.service.url}/console/sign-in/${link}`, {
    ...{ method: 'POST', redirect: 'manual' },
    headers: { 'sec-fetch-site': 'same-origin', cookie },
  })
  return { location: opened.headers.get('location'), token: readCookie(opened, 'session') ?? '' }
}

const submitPerson = (visitor: Visitor) =>
  submitAs(rig, visitor, PEOPLE, { ...TYPED, [PAGE_FIELD]: PEOPLE })

it('a form of an expired session comes back filled in after the sign-in, and is not sent by itself', async () => {
  const admin = await addVisitor(rig.database, ADMIN)
  await age(admin, 'last_used_at', 31)
  const led = await submitPerson(admin)
  expect([led.status, led.headers.get('location')]).toEqual([303, '/console/sign-in'])
  const draft = readCookie(led, 'page') ?? ''
  expect(Buffer.from(draft, 'base64url').toString('latin1')).not.toContain('address')
  expect(led.headers.getSetCookie().join()).toMatch(/page=[^;]+; Max-Age=3600; Path=\/; HttpOnly/)
  const { location, token } = await signInAgain(admin.personId, `page=${draft}`)
  expect(location).toMatch(/^\/console\/people\?kept=/)
  const page = await visitAs(rig, { token }, location ?? '')
  const text = await page.text()
  expect(text).toContain('Nothing was sent')
  expect(text).toContain('value="Lê Thị &lt;b&gt;Hoa&lt;/b&gt;"')
  expect(text).toMatch(/name="role-agent" checked/)
  expect(await rig.database.sql`select from actors where name = ${TYPED.name}`).toHaveLength(0)
})

it('another person who signs in at that browser sees nothing of it', async () => {
  const admin = await addVisitor(rig.database, ADMIN)
  await age(admin, 'last_used_at', 31)
  const cookie = `page=${readCookie(await submitPerson(admin), 'page')}`
  const other = await addVisitor(rig.database, ADMIN)
  const { location, token } = await signInAgain(other.personId, cookie)
  expect(location).toBe('/console')
  const page = await (await visitAs(rig, { token }, PEOPLE, { headers: { cookie } })).text()
  expect(page).not.toContain('value="Lê Thị')
})

it('after an hour it is gone, and so is what somebody made up', async () => {
  const admin = await addVisitor(rig.database, ADMIN)
  await age(admin, 'last_used_at', 31)
  const draft = readCookie(await submitPerson(admin), 'page') ?? ''
  const sealed = Buffer.from(draft, 'base64url')
  sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1
  for (const wrong of [sealed.toString('base64url'), 'made-up', '']) {
    const { location } = await signInAgain(admin.personId, `page=${wrong}`)
    expect(location).toBe('/console')
  }
  const late = vi.spyOn(rig.service.ctx, 'now').mockReturnValue(new Date(Date.now() + 3_601_000))
  const { location } = await signInAgain(admin.personId, `page=${draft}`)
  late.mockRestore()
  expect(location).toBe('/console')
})

it('without a session only the page is kept, and opening another page does not drop what was typed', async () => {
  const admin = await addVisitor(rig.database, ADMIN)
  const opened = await fetch(`${rig.service.url}/console/account?a=1&notice=saved`, {
    redirect: 'manual',
  })
  const page = readCookie(opened, 'page')
  expect((await signInAgain(admin.personId, `page=${page}`)).location).toBe('/console/account?a=1')
  await age(admin, 'last_used_at', 31)
  const draft = readCookie(await submitPerson(admin), 'page')
  const later = await fetch(`${rig.service.url}/console/account`, {
    redirect: 'manual',
    headers: { cookie: `page=${draft}` },
  })
  expect(readCookie(later, 'page')).toBeUndefined()
})

it('a download that was asked for leads back to its list, and a file of another version to no sign-in', async () => {
  const open = (path: string) => fetch(`${rig.service.url}${path}`, { redirect: 'manual' })
  const admin = await addVisitor(rig.database, ADMIN)
  const page = readCookie(await open('/console/transactions?state=paid&format=csv'), 'page')
  const { location } = await signInAgain(admin.personId, `page=${page}`)
  expect(location).toBe('/console/transactions?state=paid')
  const asset = await open('/console/assets/console.0123456789abcdef.css')
  expect([asset.status, asset.headers.getSetCookie()]).toEqual([404, []])
})

it.each([
  'https://evil.example/',
  '//evil.example',
  '/\\evil.example',
  '/consolex',
  '/console/sign-in/abc',
  '/console/assets/console.0123456789abcdef.css',
  '/console\r\nset-cookie: a=b',
])('the way back never leads to %j', async (page) => {
  const admin = await addVisitor(rig.database, ADMIN)
  await age(admin, 'last_used_at', 31)
  const led = await submitAs(rig, admin, PEOPLE, { ...TYPED, [PAGE_FIELD]: page })
  expect(led.headers.get('location')).toBe('/console/sign-in')
  const cookie = `page=${readCookie(led, 'page')}`
  expect((await signInAgain(admin.personId, cookie)).location).toMatch(/^\/console(\?kept=|$)/)
})

it('what is too long for a cookie is dropped, and the page is kept', async () => {
  const admin = await addVisitor(rig.database, ADMIN)
  await age(admin, 'last_used_at', 31)
  // Random text, which compression does not shorten.
  const typed = randomBytes(3_000).toString('base64')
  const fields = { name: typed, [PAGE_FIELD]: PEOPLE }
  const draft = readCookie(await submitAs(rig, admin, PEOPLE, fields), 'page') ?? ''
  expect(draft.length).toBeLessThan(4_000)
  const longest = { name: typed.slice(0, 2_600), [PAGE_FIELD]: PEOPLE }
  const full = readCookie(await submitAs(rig, admin, PEOPLE, longest), 'page') ?? ''
  expect(full.length).toBeGreaterThan(3_500)
  expect(full.length).toBeLessThan(4_000)
  const { location, token } = await signInAgain(admin.personId, `page=${draft}`)
  expect(location).toBe(PEOPLE)
  const page = await visitAs(rig, { token }, PEOPLE, { headers: { cookie: `page=${draft}` } })
  expect(await page.text()).not.toContain(typed.slice(0, 20))
})

it('the database away: a page says so and repeats itself, and leads back to a form that may have been carried out', async () => {
  const admin = await addVisitor(rig.database, ADMIN)
  await rig.database.shutOut()
  try {
    const page = await visitAs(rig, admin, '/console/account')
    expect(page.status).toBe(503)
    expect(page.headers.get('retry-after')).toBe('5')
    const text = await page.text()
    expect(text).toContain('<meta http-equiv="refresh" content="5"/>')
    expect(text).toContain('Nothing was changed')
    const sent = await submitPerson(admin)
    expect(sent.status).toBe(503)
    const answer = await sent.text()
    expect(answer).toContain(`<meta http-equiv="refresh" content="5; url=${PEOPLE}"/>`)
    expect(answer).not.toContain('Nothing was changed')
  } finally {
    await rig.database.letIn()
  }
})
