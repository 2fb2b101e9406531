// Runs the example: a person opens it by a link, signs up and enters a code.
import { createDevice } from './native.js';

const { startServer } = global.kit;

jest.unmock('react-native/Libraries/Linking/Linking');
jest.unmock('react-native/Libraries/AppState/AppState');
// Every component is compiled once.
jest.setTimeout(60_000);

test('the example shows the affiliate of the link, signs the user up and takes a code', async () => {
  const logged = jest.spyOn(console, 'warn').mockImplementation(() => {});
  const server = await startServer();
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
    { path: 'install', answer: 'unknown' },
  ]);
  const device = createDevice();
  device.initialUrl = 'https://shop.test/open?via=spring';
  device.route = (url) => url.replace('http://10.0.2.2:8080', server.url);
  global.IS_REACT_ACT_ENVIRONMENT = true;
  const { React, renderer, App } = device.launch(() => ({
    React: require('react'),
    renderer: require('react-test-renderer'),
    App: require('../../../examples/react-native/App.tsx').default,
  }));

  let screen;
  await renderer.act(() => {
    screen = renderer.create(React.createElement(App));
  });
  const shows = async (text) => {
    for (let tries = 0; !JSON.stringify(screen.toJSON()).includes(text); tries += 1) {
      if (tries === 200) throw new Error(`no ${text} in ${JSON.stringify(screen.toJSON())}`);
      await renderer.act(() => new Promise((resolve) => setTimeout(resolve, 20)));
    }
  };
  const press = async (title, text) => {
    await renderer.act(() => screen.root.findByProps({ autoCapitalize: 'none' }).props.onChangeText(text));
    await renderer.act(() => screen.root.findByProps({ title }).props.onPress());
  };

  await shows('aff_1');
  await press('Sign up', 'user-1');
  await shows('Signed up.');
  await press('Use code', 'NOBODY');
  await shows('This code is not known.');
  expect(server.state().requests.map(({ body }) => body.customerUserId ?? body.affiliateCode)).toEqual([
    'spring',
    'user-1',
    'NOBODY',
  ]);
  expect(logged).toHaveBeenCalledWith(
    expect.stringMatching(/^\[tributary\] install: 200 \{"attributionId":/),
  );
  await renderer.act(() => screen.unmount());
  device.kill();
  server.close();
});
