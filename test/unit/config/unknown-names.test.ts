import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { readSome } from '../../../src/config/environment.ts'
import { listSettingNames } from '../../../src/config/settings.ts'
import { PRODUCTION, readProblems as readLines } from './config.ts'

const readProblems = (env: Record<string, string>) => readLines({ ...PRODUCTION, ...env })

describe('a misspelt setting', () => {
  it.each([
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_ULR', 'DATABASE_URL'],
    ['database_url', 'DATABASE_URL'],
    ['DATABASE_URL_FIEL', 'DATABASE_URL_FILE'],
    ['SYNC_MAX_GAP_M', 'SYNC_MAX_GAP_MS'],
    ['REFUND_ENABLED', 'REFUNDS_ENABLED'],
    ['METRICS_PROT', 'METRICS_PORT'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['API_KEYS', 'API_KEY'],
    ['METRICS_PATH', 'METRICS_PORT'],
    ['SYNC_MAX_GAP', 'SYNC_MAX_GAP_MS'],
    ['REFUNDS_ALLOWED', 'REFUNDS_ENABLED'],
    ['GATEWAY_BASE_URL_FILE', 'GATEWAY_BASE_URL'],
    ['ROOL', undefined],
  ])('%s is refused with the nearest setting', (name, meant) => {
    const expected = meant ? [`${name} is not a setting; the nearest is ${meant}`] : []
    expect(readProblems({ [name]: '1' })).toEqual(expected)
  })

  it('is named beside every other one, and beside invalid settings', () => {
    const lines = readProblems({ PORT: 'x', DATABSE_URL: 'postgres://db/ipn', LOGLEVEL: 'debug' })
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['PORT', 'DATABSE_URL', 'LOGLEVEL'])
  })

  it('is not also reported as missing', () => {
    const { GATEWAY_SECRET, ...others } = PRODUCTION
    expect(() => readConfig({ ...others, GATEWAY_SECERT: GATEWAY_SECRET })).toThrow(
      /^GATEWAY_SECERT is not a setting; the nearest is GATEWAY_SECRET$/,
    )
  })

  it('is refused in demo mode, and by the commands that need the setting', () => {
    const env = { DATABSE_URL: 'postgres://db/ipn' }
    expect(() => readConfig(env)).toThrow(/^DATABSE_URL is not a setting/)
    expect(() => readSome(env, ['DATABASE_URL'])).toThrow(/^DATABSE_URL is not a setting/)
    expect(readSome({ METRICS_PROT: '1' }, ['DATABASE_URL']).DATABASE_URL).toBeUndefined()
  })

  it('without a value counts as unset', () => {
    expect(readProblems({ DATABSE_URL: '' })).toEqual([])
  })

  it('is any name that two changes of a letter make of a long one', () => {
    const long = listSettingNames().filter((name) => name.length >= 8)
    const known = new Set<string>(listSettingNames())
    const typo = fc
      .tuple(fc.constantFrom(...long), fc.nat(), fc.nat(), fc.constantFrom(...'XQZ'))
      .map(([name, first, second, letter]) => {
        const cut = first % name.length
        const shorter = name.slice(0, cut) + name.slice(cut + 1)
        const at = second % shorter.length
        return shorter.slice(0, at) + letter + shorter.slice(at)
      })
    fc.assert(
      fc.property(typo, (name) => {
        fc.pre(!known.has(name))
        expect(readProblems({ [name]: '1' }).join()).toContain(
          `${name} is not a setting; the nearest is`,
        )
      }),
    )
  })
})

/** The environments of common platforms, as their documentation shows them. */
const PLATFORMS: Record<string, string> = {
  docker: 'PATH HOSTNAME HOME NODE_VERSION YARN_VERSION TERM PWD SHLVL _ LANG TZ container',
  docker_links: 'DB_PORT DB_PORT_5432_TCP DB_PORT_5432_TCP_ADDR DB_NAME DB_ENV_PG_MAJOR',
  kubernetes:
    'KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_PROTO POD_NAME POD_IP NODE_NAME',
  kubernetes_services:
    'GATEWAY_PORT GATEWAY_SERVICE_HOST GATEWAY_SERVICE_PORT GATEWAY_SERVICE_PORT_HTTPS GATEWAY_PORT_443_TCP GATEWAY_PORT_443_TCP_ADDR METRICS_SERVICE_HOST METRICS_SERVICE_PORT SANDBOX_SERVICE_HOST WEBHOOK_PORT IPN_PROCESSOR_SERVICE_HOST IPN_PROCESSOR_PORT DATABASE_PORT DATABASE_SERVICE_HOST REFUNDS_PORT SYNC_SERVICE_PORT CONSOLE_PORT CONSOLE_SERVICE_HOST DEMO_PORT',
  systemd:
    'LANG PATH HOME LOGNAME USER SHELL INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID CREDENTIALS_DIRECTORY STATE_DIRECTORY RUNTIME_DIRECTORY CACHE_DIRECTORY LOGS_DIRECTORY CONFIGURATION_DIRECTORY NOTIFY_SOCKET LISTEN_FDS LISTEN_PID WATCHDOG_USEC MAINPID MEMORY_PRESSURE_WATCH',
  github_actions:
    'CI GITHUB_ACTIONS GITHUB_ACTOR GITHUB_API_URL GITHUB_BASE_REF GITHUB_ENV GITHUB_PATH GITHUB_REF GITHUB_SHA GITHUB_TOKEN GITHUB_WORKSPACE RUNNER_OS RUNNER_TEMP RUNNER_TOOL_CACHE ImageOS AGENT_TOOLSDIRECTORY ACCEPT_EULA DEPLOYMENT_BASEPATH HOMEBREW_NO_AUTO_UPDATE',
  gitlab: 'CI_JOB_ID CI_API_V4_URL CI_REGISTRY CI_COMMIT_SHA GITLAB_USER_NAME FF_NETWORK_PER_BUILD',
  heroku:
    'DYNO DYNO_RAM WEB_CONCURRENCY WEB_MEMORY MEMORY_AVAILABLE HEROKU_APP_NAME HEROKU_POSTGRESQL_RED_URL DATABASE_CONNECTION_POOL_URL PS1 HEROKU_EXEC_URL REDIS_URL',
  aws: 'AWS_REGION AWS_DEFAULT_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY ECS_CONTAINER_METADATA_URI_V4 AWS_EXECUTION_ENV',
  google: 'K_SERVICE K_REVISION K_CONFIGURATION GOOGLE_CLOUD_PROJECT GAE_ENV CLOUD_RUN_JOB',
  azure:
    'WEBSITE_SITE_NAME WEBSITES_PORT APPSETTING_WEBSITE_NODE_DEFAULT_VERSION IDENTITY_ENDPOINT',
  npm: 'npm_config_user_agent npm_config_port npm_config_loglevel npm_config_host npm_lifecycle_event npm_package_version npm_node_execpath npm_execpath INIT_CWD NODE EDITOR COLOR NODE_OPTIONS NODE_ENV NODE_EXTRA_CA_CERTS',
  shell:
    'PATH HOME USER LOGNAME SHELL MAIL EDITOR VISUAL PAGER TERM COLUMNS LINES LS_COLORS SSH_CLIENT SSH_TTY SSH_AUTH_SOCK XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS DISPLAY TMPDIR TEMP TMP OLDPWD HOSTTYPE OSTYPE MACHTYPE host port http_proxy https_proxy no_proxy HTTP_PROXY NO_PROXY',
  postgres: 'PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSSLMODE POSTGRES_PASSWORD POSTGRES_DB',
  telemetry:
    'OTEL_SERVICE_NAME OTEL_RESOURCE_ATTRIBUTES OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_PROTOCOL OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_TRACES_EXPORTER OTEL_LOG_LEVEL OTEL_SDK_DISABLED DD_AGENT_HOST DD_ENV SENTRY_DSN',
  neighbours:
    'PORT0 PORT1 PORTS HTTP_PORT VHOST RHOST HOSTS DATABASE_SSL GATEWAY_CLIENT_IP APP_KEY API_URL API_HOST APP_ENV APP_PORT DATABASE_HOST DATABASE_NAME DATABASE_USER DATABASE_PASSWORD DATABASE_PORT DATA_PATH LOG_FORMAT LOG_FILE LOG_DIR SECRET_KEY REDIS_HOST TEST_DATABASE_URL',
}

describe('the environment of a platform', () => {
  it.each(Object.entries(PLATFORMS))('%s is never refused', (_, names) => {
    // The links of Kubernetes have the address of the service.
    const value = (name: string) => (/_PORT$/.test(name) ? 'tcp://10.0.0.1:443' : 'x')
    const env = Object.fromEntries(names.split(' ').map((name) => [name, value(name)]))
    expect(readProblems(env)).toEqual([])
  })

  it('may hold the links of services with a name like that of a setting', () => {
    const env = { SANDBOX1_PORT: 'tcp://10.0.0.1:80', GATEWAY_PORT: 'tcp://10.0.0.2:443' }
    expect(readProblems(env)).toEqual([])
    expect(readProblems({ SANDBOX1_PORT: '4010' })).toHaveLength(1)
  })
})

it('a variable that begins like a setting is left alone if its first word is common to many programs, or a client sends it', () => {
  const others = 'API_URL DATA_PATH LOG_FORMAT HOST_IP ROLE_ARN DATABASE_HOST GATEWAY_CLIENT_IP'
  const env = Object.fromEntries(others.split(' ').map((name) => [name, 'x']))
  expect(readProblems(env)).toEqual([])
})
