import { type Command, Option } from 'commander'
import { z } from 'zod'
import { EVERY_MERCHANT } from '../access/keys.ts'
import {
  addPerson,
  endPerson,
  findPeople,
  LANGUAGES,
  type ListedPerson,
  listPeople,
  type Person,
  PersonEmail,
  PersonName,
  TimeZone,
} from '../access/people.ts'
import { createSignInLink, formatSignInUrl, LINK_MINUTES } from '../access/sessions.ts'
import { ROLES, type Role } from '../access/types.ts'
import { findConsoleUrl } from '../config/config.ts'
import { readSome } from '../config/environment.ts'
import type { Environment } from '../config/settings.ts'
import { DomainError } from '../errors.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endEndpoints } from '../webhooks/endpoints.ts'
import { recordChange, requireMerchant } from './database.ts'
import { type Json, jsonOption, readAs } from './options.ts'
import { type Cli, describeEnded, formatTable } from './print.ts'

type LinkOutput = Json & { linkOnly?: true }

export function addPeopleCommands(program: Command, cli: Cli): void {
  const people = program
    .command('people')
    .description('people who may use the console: add, link, list and remove')
  addAddCommand(people, cli)
  addLinkCommand(people, cli)
  addListCommand(people, cli)
  addRemoveCommand(people, cli)
}

const linkOnlyOption = () => new Option('--link-only', 'print the sign-in link alone')

function addAddCommand(people: Command, cli: Cli): void {
  people
    .command('add')
    .description('add a person, and make a sign-in link')
    .argument('<name>', 'the name, as it stands in the audit log', readPersonName)
    .requiredOption('--role <role>', `one of ${ROLES.join(', ')}; repeat it for several`, addRole)
    .option('--merchant <code>', 'an account to see; all of them if left out', addMerchant)
    .option('--email <address>', 'an e-mail address, which also names the person', readEmail)
    .option(
      '--language <code>',
      `${LANGUAGES.join(' or ')}, for when the console has several`,
      readLanguage,
    )
    .option(
      '--time-zone <name>',
      'of the days and times in the console, such as Asia/Ho_Chi_Minh',
      readTimeZone,
    )
    .addOption(linkOnlyOption())
    .addOption(jsonOption())
    .action(async (name: string, options: AddOptions) => {
      const addition = { ...options, baseUrl: readConsoleUrl(cli.env) }
      const added = await cli.change((tx) => addNamedPerson(cli, tx, name, addition))
      emitLink(cli, added, options)
    })
}

type AddOptions = LinkOutput & {
  role: Role[]
  merchant?: string[]
  email?: string
  language?: NonNullable<Person['language']>
  timeZone?: string
}

type Addition = AddOptions & { baseUrl: string }

function addLinkCommand(people: Command, cli: Cli): void {
  people
    .command('link')
    .description('make another sign-in link')
    .argument('<person>', 'the name or the e-mail address')
    .addOption(linkOnlyOption())
    .addOption(jsonOption())
    .action(async (ref: string, options: LinkOutput) => {
      const baseUrl = readConsoleUrl(cli.env)
      const linked = await cli.change(async (tx) =>
        invite(cli, tx, await findOne(tx, ref), baseUrl),
      )
      emitLink(cli, linked, options)
    })
}

function addListCommand(people: Command, { emit, onDatabase }: Cli): void {
  people
    .command('list')
    .description('list people by name; those whose access has ended come last')
    .addOption(jsonOption())
    .action(async ({ json }: Json) => {
      const rows = await onDatabase((sql) => listPeople(sql))
      emit(json, rows, formatTable(HEADINGS, rows.map(formatRow)))
    })
}

function addRemoveCommand(people: Command, cli: Cli): void {
  people
    .command('remove')
    .description("end a person's access and all their sessions now")
    .argument('<person>', 'the name or the e-mail address')
    .addOption(jsonOption())
    .action(async (ref: string, { json }: Json) => {
      const { id, name, endpoints } = await cli.change((tx) => removePerson(cli, tx, ref))
      const text = `the access of ${name} has ended\n${describeEnded(endpoints)}`
      cli.emit(json, { id, name, ended: true, endpoints }, text)
    })
}

const HEADINGS = ['NAME', 'EMAIL', 'ROLES', 'ACCOUNTS', 'SESSIONS', 'LAST SEEN', 'ENDED']

function formatRow(person: ListedPerson): string[] {
  const { name, email, roles, merchants, sessions, lastUsedAt, endedAt } = person
  const times = [lastUsedAt, endedAt].map((time) => time?.slice(0, 16) ?? '-')
  return [name, email ?? '-', roles.join(','), merchants.join(','), String(sessions), ...times]
}

type Invited = Person & { link: string; linkExpiresAt: string }

function emitLink({ emit }: Cli, person: Invited, { linkOnly, json }: LinkOutput): void {
  const { link, name } = person
  const about = `\nThis link signs ${name} in once, within ${LINK_MINUTES} minutes. Pass it on to no one else: only its hash is stored, so it cannot be shown again.\n`
  emit(json, person, `${link}\n${linkOnly ? '' : about}`)
}

const readPersonName = readAs(PersonName, 'Write 1 to 140 printable characters, other than demo.')
const readEmail = readAs(z.string().trim().pipe(PersonEmail), 'Write an e-mail address.')
const readLanguage = readAs(z.enum(LANGUAGES), `Write one of ${LANGUAGES.join(', ')}.`)
const readTimeZone = readAs(TimeZone, 'Write the name of an IANA time zone.')
const readRole = readAs(z.enum(ROLES), `Write one of ${ROLES.join(', ')}.`)
const addRole = (text: string, before: readonly Role[] = []) => [...before, readRole(text)]
const addMerchant = (code: string, before: readonly string[] = []) => [...before, code]

/** @throws UsageError if an account does not exist, DomainError if another person has the name or the e-mail address */
async function addNamedPerson(cli: Cli, tx: Tx, name: string, options: Addition) {
  const { role: roles, merchant: merchants = [EVERY_MERCHANT], email = null } = options
  const { language = null, timeZone = null } = options
  for (const code of merchants) await requireMerchant(tx, code)
  const added = await addPerson(tx, { name, email, roles, merchants, language, timeZone })
  if (added.kind === 'taken') {
    const what = added.by === 'name' ? 'name' : 'e-mail address'
    throw new DomainError('invalid_request', `another person has this ${what}; see people list`)
  }
  await recordChange(cli, tx, 'people add', null, added.id)
  const { kind: _, ...person } = added
  return await invite(cli, tx, person, options.baseUrl)
}

/** Makes a sign-in link; its time is ISO 8601. */
async function invite(cli: Cli, tx: Tx, person: Person, baseUrl: string) {
  const link = await createSignInLink(tx, person.id)
  await recordChange(cli, tx, 'people link', null, person.id)
  return { ...person, link: formatSignInUrl(baseUrl, link), linkExpiresAt: link.expiresAt }
}

/** Ends a person's access, and the webhook endpoints that belong to the person. @throws DomainError if there is no such person */
async function removePerson(cli: Cli, tx: Tx, ref: string) {
  const person = await findOne(tx, ref)
  await endPerson(tx, person.id)
  await recordChange(cli, tx, 'people remove', null, person.id)
  return { ...person, endpoints: await endEndpoints(tx, person.id) }
}

/** @param ref a name or an e-mail address */
async function findOne(tx: Tx, ref: string): Promise<Person> {
  const [person, second] = await findPeople(tx, ref)
  if (!person) {
    const detail = 'no person has this name or e-mail address; see people list'
    throw new DomainError('not_found', detail)
  }
  if (!second) return person
  const detail = 'this is the name of one person and the e-mail address of another'
  throw new DomainError('invalid_request', detail)
}

function readConsoleUrl(env: Environment | undefined): string {
  const settings = readSome(env, ['CONSOLE_BASE_URL', 'PORT'])
  return findConsoleUrl(settings, settings.PORT)
}
