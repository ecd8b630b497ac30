import { createServer as createTlsServer } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  AddressError,
  type AddressReach,
  classifyAddress,
  createResolver,
  parseOutboundUrl,
  type ResolveHost,
} from '../../../src/platform/outbound/addresses.ts'
import { createWebhookSender, type WebhookSender } from '../../../src/webhooks/send.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { listen, serve } from '../../support/gateway.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const LOOPBACK: ResolveHost = () => Promise.resolve(['127.0.0.1'])

function makeSender(
  reach: AddressReach,
  resolve: ResolveHost = LOOPBACK,
  limits = {},
): WebhookSender {
  const sender = createWebhookSender(reach, resolve, limits)
  onTestFinished(() => sender.close())
  return sender
}

const send = (sender: WebhookSender, url: string) =>
  sender.send(
    { url, secrets: [SECRET], id: '1', at: new Date(), body: '{}' },
    new AbortController().signal,
  )

/** A port on loopback that counts connections. */
async function countConnections(): Promise<{ port: number; count(): number }> {
  let connections = 0
  const port = await listen(
    createServer((socket: Socket) => {
      connections += 1
      socket.end()
    }),
  )
  return { port, count: () => connections }
}

describe('an address', () => {
  it.each([
    ['public', ['8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::808:808']],
    ['loopback', ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1']],
    ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1']],
    ['private', ['fc00::1', 'fd00:ec2::255', '::ffff:10.0.0.1', '64:ff9b::a00:1']],
    ['never', ['169.254.169.254', '169.254.0.1', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe']],
    [
      'never',
      [
        '2002:a9fe:a9fe::1',
        'fe80::1',
        'fe80::1%eth0',
        '2606:4700::1111%eth0',
        '::',
        '0.0.0.0',
        '0.1.2.3',
        '255.255.255.255',
      ],
    ],
    [
      'never',
      ['224.0.0.1', 'ff02::1', '100.64.0.1', '192.0.0.1', '192.0.2.1', '198.18.0.1', '203.0.113.1'],
    ],
    [
      'never',
      ['240.0.0.1', '::169.254.169.254', '64:ff9b:1::808:808', '::ffff:0:a9fe:a9fe', '2001::1'],
    ],
    ['never', ['fd00:ec2::254', 'fd00:0ec2:0::0254', 'fd20:ce::254']],
    // The wire server of Azure, and what leads to it.
    ['never', ['168.63.129.16', '::ffff:168.63.129.16', '64:ff9b::a83f:8110', '2002:a83f:8110::1']],
    ['public', ['168.63.129.15', '168.63.129.17']],
    // ISATAP, whatever the prefix and the address inside.
    ['never', ['2606:4700::5efe:a00:1', '2606:4700::200:5efe:7f00:1', '2001:470::0:5efe:808:808']],
    [
      'never',
      ['fc00::5efe:a00:1', 'fe80::5efe:a9fe:a9fe', '::5efe:10.0.0.1', '::200:5efe:127.0.0.1'],
    ],
    // 6to4, which no gateway on the path serves any more (RFC 7526).
    ['never', ['2002:808:808::1', '2002:a00:1::', '2002:7f00:1::1']],
    // Teredo, IPv4-compatible, site-local, discard-only, benchmarking, and the shared networks of carriers.
    [
      'never',
      ['2001:0:a00:1::1', '2001:0:808:808::1', '::10.0.0.1', '::8.8.8.8', 'fec0::1', 'feff::1'],
    ],
    ['never', ['64:ff9b:1::7f00:1', '100::1', '2001:2::1', '100.64.0.1', '100.127.255.255']],
    ['never', ['192.0.0.1', '192.0.0.170', '192.0.0.255', '192.88.99.1', '198.19.255.255']],
    ['never', ['2001:db8::1', 'fec0::1', '4000::1', 'not an address', '']],
  ])('is %s: %s', (kind, addresses) => {
    for (const address of addresses) expect(classifyAddress(address), address).toBe(kind)
  })
})

describe('a literal address in a URL', () => {
  const HIDDEN = [
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0x7f.0.0.1/',
    'https://0177.0.0.1/',
    'https://127.0.0.1./',
    'https://127.0.0.1:8443/',
    'https://%31%32%37.0.0.1/',
    'https://１２７.0.0.1/',
    'https://127。0。0。1/',
    'https://0/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https:127.0.0.1',
    'https:\\\\127.0.0.1/',
    'https://10.0.0.1/',
    'https://192.168.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://2852039166/',
    'https://0xa9.0xfe.0xa9.0xfe/',
    'https://[::ffff:169.254.169.254]/',
    'https://[64:ff9b::169.254.169.254]/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
  ]
  it.each(HIDDEN)('%s is refused before anything is sent, in any notation', async (url) => {
    expect(() => parseOutboundUrl(url, 'public')).toThrow(AddressError)
    await expect(makeSender('public').check(url)).rejects.toThrow('not public')
  })

  it('is refused at the connection as well, whatever was registered', async () => {
    const { port, count } = await countConnections()
    for (const host of ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]']) {
      const { status, error } = await send(makeSender('public'), `https://${host}:${port}/`)
      expect({ status, error }).toMatchObject({
        status: null,
        error: expect.stringMatching('not public'),
      })
    }
    expect(count()).toBe(0)
  })

  it.each(['169.254.169.254', '[fe80::1]', '0.0.0.0', '[::ffff:169.254.169.254]', '224.0.0.1'])(
    '%s is refused even where private networks are allowed',
    async (host) => {
      expect(() => parseOutboundUrl(`http://${host}/`, 'private')).toThrow('not public')
      const { error } = await send(makeSender('private'), `http://${host}:9/`)
      expect(error).toContain('not public')
    },
  )
})

describe('where only this machine may be called beside public addresses', () => {
  it.each(['http://127.0.0.1:9/', 'http://localhost:9/', 'https://[::1]:9/', 'http://127.1:9/'])(
    '%s may be',
    async (url) => {
      expect(parseOutboundUrl(url, 'loopback').port).toBe('9')
      const { error } = await send(makeSender('loopback'), url)
      expect(error).not.toBeNull()
      expect(error).not.toContain('the url')
    },
  )

  it.each(['10.0.0.1', '192.168.0.1', '[fd00::1]', '169.254.169.254', '100.64.0.1'])(
    '%s may not be, also when a name leads there',
    async (host) => {
      expect(() => parseOutboundUrl(`http://${host}/`, 'loopback')).toThrow('not public')
      const named = () => Promise.resolve([host.replace(/[[\]]/g, '')])
      const sender = makeSender('loopback', named)
      await expect(sender.check('http://inside.example/')).rejects.toThrow('not public')
      expect((await send(sender, 'http://inside.example/')).error).toContain('not public')
    },
  )
})

describe('a URL', () => {
  it.each([
    ['http://shop.example/', 'https://'],
    ['ftp://shop.example/', 'https://'],
    ['file:///etc/passwd', 'https://'],
    ['https://user@shop.example/', 'password'],
    ['https://user:password@shop.example/', 'password'],
    ['https://shop.example@127.0.0.1/', 'password'],
    ['https://shop.example/#part', 'fragment'],
    ['https://shop.example/a b', 'not a valid URL'],
    ['https://shop.ex\tample/', 'not a valid URL'],
    ['https://', 'not a valid URL'],
    ['shop.example', 'not a valid URL'],
    ['', 'not a valid URL'],
    [`https://shop.example/${'a'.repeat(2_048)}`, 'longer'],
  ])('%s is refused', (url, why) => {
    expect(() => parseOutboundUrl(url, 'public')).toThrow(why)
  })

  it('of a public host is accepted as it is, with path, query and port', () => {
    for (const url of ['https://shop.example', 'https://8.8.8.8:8443/a?b=c']) {
      expect(parseOutboundUrl(url, 'public').origin).toBe(new URL(url).origin)
    }
  })

  it('with plain http is accepted for private addresses only, where they are allowed', async () => {
    expect(parseOutboundUrl('http://127.0.0.1:4000/', 'private').port).toBe('4000')
    expect(() => parseOutboundUrl('http://8.8.8.8/', 'private')).toThrow('https://')
    const sender = makeSender('private', () => Promise.resolve(['8.8.8.8']))
    await expect(sender.check('http://shop.example/')).rejects.toThrow('https://')
    expect((await send(sender, 'http://shop.example/')).error).toContain('https://')
  })
})

describe('a name', () => {
  it.each(['localhost', 'localhost.', 'LOCALHOST', 'a.localhost', 'db', 'nas.local', 'm.internal'])(
    '%s is for this network alone: taken where private networks are allowed, nowhere else',
    (name) => {
      expect(() => parseOutboundUrl(`https://${name}:8443/`, 'public')).toThrow('public host')
      expect(parseOutboundUrl(`http://${name}:8080/`, 'private').port).toBe('8080')
    },
  )

  it('of this machine is resolved by the machine, where private networks are allowed', async () => {
    const addresses = await createResolver('private')('localhost')
    expect(addresses.map(classifyAddress)).toContain('loopback')
  })

  it.each([
    ['loopback', ['127.0.0.1']],
    ['a private network', ['10.1.2.3']],
    ['the metadata of a cloud', ['169.254.169.254']],
    ['a public address followed by a private one', ['8.8.8.8', '127.0.0.1']],
    ['IPv4 in IPv6', ['::ffff:127.0.0.1']],
  ])(
    'that leads to %s is refused when it is registered and when it is called',
    async (_, addresses) => {
      const { port, count } = await countConnections()
      const sender = makeSender('public', () => Promise.resolve(addresses))
      const url = `https://shop.example:${port}/`
      await expect(sender.check(url)).rejects.toThrow(AddressError)
      const { error } = await send(sender, url)
      expect(error).toContain('the url points to an address that is not public')
      // The hint names the setting for private addresses; cloud metadata is never allowed.
      expect(error?.includes('WEBHOOK_ALLOW_PRIVATE')).toBe(!addresses.includes('169.254.169.254'))
      expect(count()).toBe(0)
    },
  )

  it('that resolves differently the second time is refused: the checked address is the one connected to', async () => {
    const { port, count } = await countConnections()
    const answers = [['8.8.8.8'], ['127.0.0.1']]
    const sender = makeSender('public', () => Promise.resolve(answers.shift() ?? ['127.0.0.1']))
    const url = `https://shop.example:${port}/`
    await sender.check(url)
    expect((await send(sender, url)).error).toContain('not public')
    expect(count()).toBe(0)
    expect(answers).toEqual([])
  })

  it('that does not resolve (yet), or whose name server is silent, is accepted; a call to it fails', async () => {
    const unknown = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }))
    const sender = makeSender('public', unknown)
    await sender.check('https://shop.example/')
    expect((await send(sender, 'https://shop.example/')).error).toBe('ENOTFOUND')
    const silent = makeSender('public', () => new Promise(() => {}), { callMs: 50, resolveMs: 10 })
    await silent.check('https://shop.example/')
    expect((await send(silent, 'https://shop.example/')).error).toBe('no answer within 50 ms')
  })
})

describe('a call', () => {
  it('follows no redirect: it is a failure, and the other address is not called', async () => {
    const other = await serve((response) => response.end())
    const receiver = await serve((response) =>
      response.writeHead(307, { location: other.url }).end(),
    )
    const { status, error } = await send(makeSender('private'), receiver.url)
    expect({ status, error }).toEqual({ status: 307, error: 'answered 307' })
    expect(other.seen).toEqual([])
  })

  it('ignores a proxy of the environment', async () => {
    const proxy = await countConnections()
    const receiver = await serve((response) => response.end())
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY']) {
      process.env[name] = `http://127.0.0.1:${proxy.port}`
      onTestFinished(() => {
        delete process.env[name]
      })
    }
    expect(await send(makeSender('private'), receiver.url)).toMatchObject({ error: null })
    expect(proxy.count()).toBe(0)
  })

  it('hangs up on a long response; its status counts', async () => {
    let isClosed = false
    const receiver = await serve((response) => {
      response.on('close', () => {
        isClosed = true
      })
      response.write(Buffer.alloc(8 * 1024))
    })
    const sent = send(makeSender('private'), receiver.url)
    await waitUntil(() => isClosed, { what: 'the call to be ended', timeoutMs: 5_000 })
    expect(await sent).toMatchObject({ status: 200, error: null })
  })

  it('times out, whether the response is silent or dripping', async () => {
    const sender = makeSender('private', LOOPBACK, { callMs: 500 })
    const silent = await serve(() => {})
    expect(await send(sender, silent.url)).toMatchObject({
      status: null,
      error: 'no answer within 500 ms',
    })
    const dripping = await serve((response) => response.writeHead(200).write('a'))
    expect(await send(sender, dripping.url)).toMatchObject({ status: 200, error: null })
  })

  it('accepts only a valid certificate, whatever the environment sets', async () => {
    const { issue } = makeAuthority()
    const { key, cert } = issue('shop.example')
    const port = await listen(createTlsServer({ key, cert }, (_, response) => response.end()))
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    onTestFinished(() => {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    })
    const { status, error } = await send(makeSender('private'), `https://shop.example:${port}/`)
    expect(status).toBeNull()
    expect(error).toMatch(/CERT|UNABLE_TO/)
  })

  it('of a test that gets no HTTP answer takes one time and has one wording, whatever listens there', async () => {
    const sender = makeSender('private', LOOPBACK, { testMs: 120 })
    const silent = await listen(createServer(() => {}))
    const other = await listen(createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')))
    const { port: hangingUp } = await countConnections()
    const test = async (port: number) => {
      const began = performance.now()
      const message = { url: `http://127.0.0.1:${port}/`, secrets: [SECRET], id: '1', body: '{}' }
      const sent = { ...message, at: new Date() }
      const result = await sender.sendTest(sent, new AbortController().signal)
      expect(performance.now() - began).toBeGreaterThanOrEqual(118)
      expect(result).toEqual({ status: null, error: 'no answer', answer: null, durationMs: 120 })
    }
    await Promise.all([65_535, silent, other, hangingUp].map(test))
  })
})
