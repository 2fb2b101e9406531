// An app that shows its affiliate, signs a user up and takes codes. Replace the App.tsx of a new React Native project with it.
import { applyCode, attributedAffiliateId, identify, start } from '@tributary/react-native';
import { useEffect, useState } from 'react';
import { Button, Text, TextInput, View } from 'react-native';

const API_BASE_URL = 'http://10.0.2.2:8080'; // the computer that runs the Android emulator
const API_KEY = 'pk_live_YOUR_KEY';

const whenAttributed: { tell?: (affiliateId: string) => void } = {};
void start({
  apiKey: API_KEY,
  apiBaseUrl: API_BASE_URL,
  debug: true,
  onAttribution: (affiliateId) => whenAttributed.tell?.(affiliateId),
});

export default function App() {
  const [affiliate, setAffiliate] = useState<string | null>(null);
  const [text, setText] = useState('');
  const [result, setResult] = useState('');

  useEffect(() => {
    whenAttributed.tell = setAffiliate;
    void attributedAffiliateId().then(setAffiliate);
    return () => {
      delete whenAttributed.tell;
    };
  }, []);

  const signUp = async () => setResult((await identify(text)) ? 'Signed up.' : 'Not attributed, or not yet.');
  const useCode = async () => setResult((await applyCode(text)) ? 'Thank you.' : 'This code is not known.');

  return (
    <View style={{ padding: 48 }}>
      <Text>Affiliate: {affiliate ?? 'none'}</Text>
      <TextInput
        value={text}
        onChangeText={setText}
        autoCapitalize="none"
        placeholder="user id, or code of a creator"
      />
      <Button title="Sign up" onPress={signUp} />
      <Button title="Use code" onPress={useCode} />
      <Text>{result}</Text>
    </View>
  );
}
