import { describe, expect, it } from 'vitest'
import { readArguments, runMain } from '../../../src/start/run.ts'
import { formatVersion, nameCli, PACKAGE } from '../../../src/version.ts'

async function run(...args: string[]) {
  let out = ''
  let err = ''
  const code = await runMain(args, {
    env: { PORT: 'none' },
    print: (text) => {
      out += text
    },
    printError: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

describe('the arguments of the program', () => {
  it('choose one action, and the service without any', () => {
    expect(readArguments([])).toEqual({ action: 'serve' })
    expect(readArguments(['--check'])).toEqual({ action: 'check', json: false })
    expect(readArguments(['--json', '--check'])).toEqual({ action: 'check', json: true })
    expect(readArguments(['--version'])).toEqual({ action: 'version' })
    expect(readArguments(['--help', '--help'])).toEqual({ action: 'help' })
  })

  it.each([
    [['--chekc'], '--chekc'],
    [['check'], 'check'],
    [['-c'], '-c'],
    [['--no-check'], '--no-check'],
    [['--check', '--', 'x'], '--'],
    [['--port=1'], '--port'],
    [['--port', '3000'], '--port'],
    [['--check=true'], '--check'],
    [['--json'], '--json'],
    [['--check', '--version'], '--check'],
    [['--help', '--version', '--check'], '--check'],
    [[''], '""'],
    [['a\nb'], 'a\\nb'],
  ])(
    '%j are refused with one line that names what is wrong, and exit code 2',
    async (args, named) => {
      const { code, out, err } = await run(...args)
      expect(code).toBe(2)
      expect(out).toBe('')
      expect(err).toContain(named)
      expect(err).toMatch(/^[^\n]+; see --help\n$/)
    },
  )

  it('--help names every argument, and --version the version, whatever the settings', async () => {
    const help = await run('--help')
    expect(help).toMatchObject({ code: 0, err: '' })
    for (const name of ['--check', '--json', '--version', '--help']) {
      expect(help.out).toContain(name)
    }
    expect(await run('--version')).toMatchObject({
      code: 0,
      out: `ipn-processor ${PACKAGE.version}\n`,
    })
    const commit = '0123456789abcdef0123456789abcdef01234567'
    expect(formatVersion(commit)).toBe(`ipn-processor ${PACKAGE.version} (0123456789ab)`)
  })

  it.each([
    ['file:///srv/src/version.ts', 'npm run -s cli --'],
    ['file:///srv/dist/version.js', 'node dist/cli/main.js'],
  ])('messages name the command line as %s calls it', (url, name) => {
    expect(nameCli(url, '/srv')).toBe(name)
  })

  it('a start that fails returns 1 with a line for each wrong setting', async () => {
    const { code, err } = await run()
    expect(code).toBe(1)
    expect(err).toMatch(/^The settings are invalid:\n {2}PORT must be .+\n$/)
  })
})
